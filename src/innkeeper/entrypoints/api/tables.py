"""All public APIs, by name.

The packages ``compute``, ``pclouds`` and ``zones`` form the Compute API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from innkeeper.domain.slices import Settings
from innkeeper.entrypoints.api.compute import faults, rules
from innkeeper.entrypoints.api.compute.accounts.routes import ACCOUNT_ROUTES
from innkeeper.entrypoints.api.compute.documents import DOCUMENT_ROUTES
from innkeeper.entrypoints.api.compute.flavors.routes import FLAVOR_ROUTES
from innkeeper.entrypoints.api.compute.grouping.routes import GROUPING_ROUTES
from innkeeper.entrypoints.api.compute.hosts.routes import HOST_ROUTES
from innkeeper.entrypoints.api.compute.servers.actions import ACTIONS
from innkeeper.entrypoints.api.compute.servers.history_routes import HISTORY_ROUTES
from innkeeper.entrypoints.api.compute.servers.routes import SERVER_ROUTES
from innkeeper.entrypoints.api.compute.versions.table import VERSIONS
from innkeeper.entrypoints.api.identity.routes import IDENTITY
from innkeeper.entrypoints.api.image.api import IMAGE
from innkeeper.entrypoints.api.leases.routes import RESERVATION
from innkeeper.entrypoints.api.pclouds import routes as pcloud_routes
from innkeeper.entrypoints.api.placement.routes import PLACEMENT
from innkeeper.entrypoints.api.pods.door.routes import DOOR_ROUTES
from innkeeper.entrypoints.api.pods.routes import PODS
from innkeeper.entrypoints.api.routing import Api, Route, all_rules
from innkeeper.entrypoints.api.volumes.api import VOLUME
from innkeeper.entrypoints.api.zones.routes import PLAN_ROUTES, TREE_ROUTES

ROUTES: tuple[Route, ...] = (
    *DOCUMENT_ROUTES,
    *FLAVOR_ROUTES,
    *ACCOUNT_ROUTES,
    *HOST_ROUTES,
    *GROUPING_ROUTES,
    *pcloud_routes.PCLOUD_ROUTES,
    *SERVER_ROUTES,
    *PLAN_ROUTES,
    *TREE_ROUTES,
    *HISTORY_ROUTES,
)
COMPUTE = Api(
    name="compute",
    service_type="compute",
    title="Compute",
    routes=ROUTES,
    rules=all_rules(ROUTES, (*rules.OTHER_RULES, *pcloud_routes.OTHER_RULES), ACTIONS.values()),
    fault_form=faults.form,
    versions=VERSIONS,
    body_refusal=faults.body_refusal,
    query_refusal=faults.query_refusal,
    needs_project=True,
    catalog_path="/v2.1",
)
APIS: Mapping[str, Api] = {
    "compute": COMPUTE,
    "identity": IDENTITY,
    "image": IMAGE,
    "placement": PLACEMENT,
    "pods": PODS,
    "reservation": RESERVATION,
    "volume": VOLUME,
}


def served_apis(settings: Settings) -> dict[str, Api]:
    """Return the APIs to serve, by name.

    If Keystone is external, the Identity API is missing. A door (a gateway to pods) also serves
    routes that only pods implement.
    """
    is_ours = settings.authenticating.auth != "keystone"
    known = dict(APIS)
    if settings.podding.role == "gateway":
        known["compute"] = replace(COMPUTE, routes=(*ROUTES, *DOOR_ROUTES))
    return {
        name: known[name]
        for name in settings.serving.apis
        if name in APIS and (is_ours or name != "identity")
    }
