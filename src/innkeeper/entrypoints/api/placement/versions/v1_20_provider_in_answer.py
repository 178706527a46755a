"""Who creates a provider is shown it."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.versions.shapes import PROVIDERS
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(1, 20)
SUMMARY = (
    "`POST /resource_providers` answers 200 with the provider; before, 201 without a body."
)


def _hide(answer: Answer, _call: Call) -> None:
    answer.status = 201
    answer.body = None
    answer.headers.pop("last-modified", None)
    answer.headers.pop("cache-control", None)


EDGES = (Edge("POST", PROVIDERS, down=_hide),)
