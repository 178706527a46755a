"""What microversions changed about compute services and hypervisors.

The lists of hypervisors until 2.32 are routes of their own, which give all hosts at once. The
routes that named a service in the body, or searched hypervisors by a part of their name, end
with 2.52.
"""

from __future__ import annotations

from typing import Any

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.hosts.hypervisors import in_answer
from innkeeper.entrypoints.api.compute.versions.edges import (
    ANYTHING,
    CLOSED_QUERIES,
    dropping,
    opened,
)
from innkeeper.entrypoints.api.faults import encode
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import PAGE_VALUES, query

SERVICES = "/v2.1/os-services"
ALL = "/v2.1/os-hypervisors"
DETAIL = "/v2.1/os-hypervisors/detail"
ONE = "/v2.1/os-hypervisors/{hypervisor_id}"
PAGES_ONLY = query(PAGE_VALUES)


def _services(answer: Answer) -> list[Any]:
    services: list[Any] = answer.body["services"]
    return services


def _cpu_facts_as_text(answer: Answer, call: Call) -> None:
    for each in in_answer(answer):
        if "cpu_info" in each:
            each["cpu_info"] = encode(each["cpu_info"]).decode()


def _numbers_of_services(answer: Answer, call: Call) -> None:
    for service in _services(answer):
        service["id"] = service.older["id"]


def _numbers(answer: Answer, call: Call) -> None:
    for each in in_answer(answer):
        each["id"] = each.older["id"]
        if "service" in each:
            each["service"]["id"] = each["id"]
    links = answer.body.get("hypervisors_links")
    if links:
        links[0]["href"] = answer.body.older["next"]


def _no_empty_lists(answer: Answer, call: Call) -> None:
    for each in in_answer(answer):
        if each.get("servers") == []:
            del each["servers"]


def _with_amounts(answer: Answer, call: Call) -> None:
    for each in in_answer(answer):
        each.pop("uptime", None)
        each.update(each.older["amounts"])
        each["cpu_info"] = each.older["cpu_info"]


STEPS = (
    Step(
        Version(2, 11),
        "Compute services can be forced down, and show whether they are.",
        (Edge("GET", SERVICES, down=dropping(_services, "forced_down")),),
    ),
    Step(
        Version(2, 28),
        "A hypervisor's cpu_info is an object.",
        (Edge("GET", DETAIL, down=_cpu_facts_as_text), Edge("GET", ONE, down=_cpu_facts_as_text)),
    ),
    Step(
        Version(2, 33),
        "Hypervisors are listed in pages.",
        (Edge("GET", ALL, query_before=ANYTHING), Edge("GET", DETAIL, query_before=ANYTHING)),
    ),
    Step(
        Version(2, 53),
        "Compute services and hypervisors have UUIDs, and are found by a part of their names.",
        (
            Edge("GET", SERVICES, down=_numbers_of_services),
            Edge("GET", ALL, query_before=PAGES_ONLY, down=_numbers),
            Edge("GET", DETAIL, query_before=PAGES_ONLY, down=_numbers),
            Edge("GET", ONE, down=_numbers),
            Edge("GET", f"{ONE}/uptime", down=_numbers),
            Edge("GET", f"{ONE}/search", down=_numbers),
            Edge("GET", f"{ONE}/servers", down=_numbers),
        ),
    ),
    Step(Version(2, 75), CLOSED_QUERIES, (Edge("GET", SERVICES, query_before=opened),)),
    Step(
        Version(2, 75),
        "A hypervisor without servers shows an empty list of them.",
        (
            Edge("GET", ALL, down=_no_empty_lists),
            Edge("GET", DETAIL, down=_no_empty_lists),
            Edge("GET", ONE, down=_no_empty_lists),
        ),
    ),
    Step(
        Version(2, 88),
        "Hypervisors show their uptime, and no amounts; there are no statistics.",
        (Edge("GET", DETAIL, down=_with_amounts), Edge("GET", ONE, down=_with_amounts)),
    ),
)
