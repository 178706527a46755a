"""The Placement API as a whole."""

from __future__ import annotations

from innkeeper.entrypoints.api.placement import faults
from innkeeper.entrypoints.api.placement.routes import ROUTES
from innkeeper.entrypoints.api.placement.rules import WORDS
from innkeeper.entrypoints.api.placement.versions.table import VERSIONS
from innkeeper.entrypoints.api.routing import Api, all_rules

PLACEMENT = Api(
    name="placement",
    service_type="placement",
    title="Placement",
    routes=ROUTES,
    rules=(*WORDS, *all_rules(ROUTES)),
    fault_form=faults.fault_form,
    versions=VERSIONS,
    body_refusal=faults.body_refusal,
    query_refusal=faults.query_refusal,
    has_single_query_values=True,
    takes_whole_floats=True,
    has_most_telling_complaints=True,
    has_exact_slashes=True,
)
