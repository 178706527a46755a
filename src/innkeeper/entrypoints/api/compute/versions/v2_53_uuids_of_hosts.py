"""2.53: compute services and hypervisors have UUIDs for ids; before, they had numbers.

The routes that named a host in the body, or searched by a part of its name, end here.
"""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.compute.hosts.hypervisors import in_answer
from innkeeper.entrypoints.api.compute.hosts.schemas import HYPERVISORS_PAGED
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 53)
SUMMARY = "Compute services and hypervisors have UUIDs, and are found by a part of their names."


def _numbers(answer: Answer, call: Call) -> None:
    found: list[Any] = in_answer(answer)
    for each in found:
        each["id"] = each.older["id"]
        if "service" in each:
            each["service"]["id"] = each["id"]
    links = answer.body.get("hypervisors_links")
    if links:
        links[0]["href"] = answer.body.older["next"]


def _service_numbers(answer: Answer, call: Call) -> None:
    for service in answer.body["services"]:
        service["id"] = service.older["id"]


EDGES = (
    Edge("GET", "/v2.1/os-services", down=_service_numbers),
    Edge("GET", "/v2.1/os-hypervisors", query_before=HYPERVISORS_PAGED, down=_numbers),
    Edge("GET", "/v2.1/os-hypervisors/detail", query_before=HYPERVISORS_PAGED, down=_numbers),
    Edge("GET", "/v2.1/os-hypervisors/{hypervisor_id}", down=_numbers),
    Edge("GET", "/v2.1/os-hypervisors/{hypervisor_id}/uptime", down=_numbers),
    Edge("GET", "/v2.1/os-hypervisors/{hypervisor_id}/search", down=_numbers),
    Edge("GET", "/v2.1/os-hypervisors/{hypervisor_id}/servers", down=_numbers),
)
