"""2.28: the facts of a host's processor are an object; before, they were JSON in a text."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.hosts.hypervisors import in_answer
from innkeeper.entrypoints.api.faults import encode
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 28)
SUMMARY = "A hypervisor's cpu_info is an object."


def _as_text(answer: Answer, call: Call) -> None:
    for each in in_answer(answer):
        if "cpu_info" in each:
            each["cpu_info"] = encode(each["cpu_info"]).decode()


EDGES = (
    Edge("GET", "/v2.1/os-hypervisors/detail", down=_as_text),
    Edge("GET", "/v2.1/os-hypervisors/{hypervisor_id}", down=_as_text),
)
