"""What 2.75 changed about hosts: closed queries, and empty lists of servers that are shown."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.hosts.hypervisors import in_answer
from innkeeper.entrypoints.api.compute.hosts.schemas import SERVICES_OPEN
from innkeeper.entrypoints.api.microversions import Edge
from innkeeper.entrypoints.api.routing import Answer, Call


def _no_empty_lists(answer: Answer, call: Call) -> None:
    for each in in_answer(answer):
        if each.get("servers") == []:
            del each["servers"]


EDGES = (
    Edge("GET", "/v2.1/os-services", query_before=SERVICES_OPEN),
    Edge("GET", "/v2.1/os-hypervisors", down=_no_empty_lists),
    Edge("GET", "/v2.1/os-hypervisors/detail", down=_no_empty_lists),
    Edge("GET", "/v2.1/os-hypervisors/{hypervisor_id}", down=_no_empty_lists),
)
