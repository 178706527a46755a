"""Providers are found by traits that they do not have."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.queries import ANY_OF, NOT, WRONG, no_trait
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES, PROVIDERS
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 22)
SUMMARY = "`!` before a trait in `required` forbids it."
FORM = "HW_CPU_X86_VMX,CUSTOM_MAGIC"


def _refuse(call: Call) -> None:
    value = call.last("required")
    if value is None or value.startswith(ANY_OF):
        # A choice came later still, and its own step refuses it.
        return
    names = [name.strip() for name in value.split(",")]
    if not all(name.lstrip(NOT) for name in names):
        raise no_trait(FORM, value)
    if any(name.startswith(NOT) for name in names):
        raise Invalid(
            f"{WRONG}Expected 'required' parameter value of the form: {FORM}. Got: {value}"
        )


EDGES = (Edge("GET", PROVIDERS, up=_refuse), Edge("GET", CANDIDATES, up=_refuse))
