"""The Reservation API, as the shell serves it."""

from __future__ import annotations

from innkeeper.entrypoints.api.leases import faults
from innkeeper.entrypoints.api.leases.routes import ROUTES
from innkeeper.entrypoints.api.leases.rules import OTHER_RULES
from innkeeper.entrypoints.api.routing import Api, all_rules

RESERVATION = Api(
    name="reservation",
    service_type="reservation",
    title="Reservation",
    routes=ROUTES,
    rules=all_rules(ROUTES, OTHER_RULES),
    fault_form=faults.form,
    body_refusal=faults.refusal,
    query_refusal=faults.refusal,
    needs_project=True,
    catalog_path="/v1",
)
