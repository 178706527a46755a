"""The Compute API, as the shell serves it."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute import faults
from innkeeper.entrypoints.api.compute.routes import ROUTES
from innkeeper.entrypoints.api.compute.rules import RULES
from innkeeper.entrypoints.api.compute.versions.table import VERSIONS
from innkeeper.entrypoints.api.routing import Api

COMPUTE = Api(
    name="compute",
    service_type="compute",
    title="Compute",
    routes=ROUTES,
    rules=RULES,
    fault_form=faults.form,
    versions=VERSIONS,
    body_refusal=faults.body_refusal,
    query_refusal=faults.query_refusal,
    needs_project=True,
    catalog_path="/v2.1",
)
