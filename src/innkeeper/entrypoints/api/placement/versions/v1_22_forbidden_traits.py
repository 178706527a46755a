"""Providers are listed by traits that they do not have."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.versions.shapes import PROVIDERS
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 22)
SUMMARY = "`!` before a trait in `required` forbids it."


def _refuse(call: Call) -> None:
    value = call.last("required")
    if value is None:
        return
    names = value.split(",")
    if not all(names) or any(name.startswith("!") for name in names):
        raise Invalid(
            "Invalid query string parameters: Expected 'required' parameter value of the form: "
            f"HW_CPU_X86_VMX,CUSTOM_MAGIC. Got: {value}"
        )


EDGES = (Edge("GET", PROVIDERS, up=_refuse),)
