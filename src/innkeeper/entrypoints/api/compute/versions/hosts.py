"""The changes that microversions made to compute services and hypervisors.

Until 2.32, separate routes list all hypervisors, without paging. Until 2.52, some routes name a
service in the body, and some search hypervisors by a part of their names.
"""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.hosts.schemas import PAGES
from innkeeper.entrypoints.api.compute.versions.edges import closed_queries
from innkeeper.entrypoints.api.edges import ANYTHING, dropping, edges, resources
from innkeeper.entrypoints.api.faults import encode
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.routing import Answer, Call

SERVICES = "/v2.1/os-services"
ALL = "/v2.1/os-hypervisors"
DETAIL = "/v2.1/os-hypervisors/detail"
ONE = "/v2.1/os-hypervisors/{hypervisor_id}"
LISTS = (("GET", ALL), ("GET", DETAIL))

_services = resources("services", "service")
_hypervisors = resources("hypervisors", "hypervisor")


def _cpu_facts_as_text(answer: Answer, call: Call) -> None:
    for each in _hypervisors(answer):
        if "cpu_info" in each:
            each["cpu_info"] = encode(each["cpu_info"]).decode()


def _numbers_of_services(answer: Answer, call: Call) -> None:
    for service in _services(answer):
        service["id"] = service.older["id"]


def _numbers(answer: Answer, call: Call) -> None:
    for each in _hypervisors(answer):
        each["id"] = each.older["id"]
        if "service" in each:
            each["service"]["id"] = each["id"]
    if "hypervisors_links" in answer.body:
        answer.body["hypervisors_links"] = answer.body.older["links"]


def _no_empty_lists(answer: Answer, call: Call) -> None:
    for each in _hypervisors(answer):
        if each.get("servers") == []:
            del each["servers"]


def _with_amounts(answer: Answer, call: Call) -> None:
    for each in _hypervisors(answer):
        each.pop("uptime", None)
        each.update(each.older["amounts"])
        each["cpu_info"] = each.older["cpu_info"]


STEPS = (
    Step(
        Version(2, 11),
        "Compute services can be forced down. They show whether they are forced down.",
        (Edge("GET", SERVICES, down=dropping(_services, "forced_down")),),
    ),
    Step(
        Version(2, 28),
        "A hypervisor's `cpu_info` is an object instead of a text.",
        edges((("GET", DETAIL), ("GET", ONE)), down=_cpu_facts_as_text),
    ),
    Step(Version(2, 33), "Hypervisors are listed in pages.", edges(LISTS, query_before=ANYTHING)),
    Step(
        Version(2, 53),
        "Compute services and hypervisors have UUIDs. "
        "Lists of hypervisors can be filtered by a part of the name.",
        (
            Edge("GET", SERVICES, down=_numbers_of_services),
            *edges(LISTS, query_before=PAGES, down=_numbers),
            *edges(
                tuple(("GET", f"{ONE}{part}") for part in ("", "/uptime", "/search", "/servers")),
                down=_numbers,
            ),
        ),
    ),
    closed_queries(("GET", SERVICES)),
    Step(
        Version(2, 75),
        "A hypervisor without servers shows an empty list of servers.",
        edges((*LISTS, ("GET", ONE)), down=_no_empty_lists),
    ),
    Step(
        Version(2, 88),
        "Hypervisors show their uptime, but no longer their capacity and usage. "
        "Statistics are removed.",
        edges((("GET", DETAIL), ("GET", ONE)), down=_with_amounts),
    ),
)
