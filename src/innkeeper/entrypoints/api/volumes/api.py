"""The Block Storage API, with its routes, rules and versions, and the form of its errors."""

from __future__ import annotations

from innkeeper.entrypoints.api.routing import Api, all_rules
from innkeeper.entrypoints.api.volumes import faults
from innkeeper.entrypoints.api.volumes.actions import ACTIONS
from innkeeper.entrypoints.api.volumes.admin_routes import ADMIN_ROUTES
from innkeeper.entrypoints.api.volumes.routes import ATTACHMENT_ROUTES, VOLUME_ROUTES
from innkeeper.entrypoints.api.volumes.rules import OTHER_RULES
from innkeeper.entrypoints.api.volumes.versions.table import VERSIONS

ROUTES = (*VOLUME_ROUTES, *ATTACHMENT_ROUTES, *ADMIN_ROUTES)
VOLUME = Api(
    name="volume",
    service_type="block-storage",
    title="Block Storage",
    routes=ROUTES,
    rules=all_rules(ROUTES, OTHER_RULES, ACTIONS.values()),
    fault_form=faults.form,
    versions=VERSIONS,
    body_refusal=faults.body_refusal,
    query_refusal=faults.query_refusal,
    needs_project=True,
    catalog_path="/v3",
    service_aliases=("volumev3",),
    takes_project_in_path=True,
)
