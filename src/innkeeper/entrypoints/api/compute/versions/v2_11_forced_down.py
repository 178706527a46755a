"""2.11: a compute service shows whether it was declared down; ``force-down`` begins here."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 11)
SUMMARY = "Compute services can be forced down, and show whether they are."


def _drop(answer: Answer, call: Call) -> None:
    for service in answer.body["services"]:
        service.pop("forced_down", None)


EDGES = (Edge("GET", "/v2.1/os-services", down=_drop),)
