"""The Image API, with its routes, its rules, and the form of its errors."""

from __future__ import annotations

from innkeeper.entrypoints.api.image import faults
from innkeeper.entrypoints.api.image.routes import ROUTES
from innkeeper.entrypoints.api.image.rules import OTHER_RULES
from innkeeper.entrypoints.api.routing import Api, all_rules

IMAGE = Api(
    name="image",
    service_type="image",
    title="Image",
    routes=ROUTES,
    rules=all_rules(ROUTES, OTHER_RULES),
    fault_form=faults.form,
    body_refusal=faults.refusal,
    query_refusal=faults.refusal,
    needs_project=True,
)
