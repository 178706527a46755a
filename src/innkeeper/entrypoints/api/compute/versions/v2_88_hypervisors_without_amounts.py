"""2.88: what a host has is asked of Placement; a hypervisor shows its uptime instead."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.compute.hosts.hypervisors import in_answer
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 88)
SUMMARY = "Hypervisors show their uptime, and no amounts; there are no statistics."


def _with_amounts(answer: Answer, call: Call) -> None:
    found: list[Any] = in_answer(answer)
    for each in found:
        each.pop("uptime", None)
        each.update(each.older["amounts"])
        each["cpu_info"] = each.older["cpu_info"]


EDGES = (
    Edge("GET", "/v2.1/os-hypervisors/detail", down=_with_amounts),
    Edge("GET", "/v2.1/os-hypervisors/{hypervisor_id}", down=_with_amounts),
)
