"""``GET /v1/availability`` answers about each resource type, built-in or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from innkeeper.systems.leases.resource_types.catalogue import TYPES
from innkeeper.systems.leases.resource_types.resource_type import OwnType
from tests.support.own_resource_types import QueriedType, RackType
from tests.support.running import Running, running

OWN = "tests.support.own_resource_types"
ALL: tuple[OwnType, ...] = (*TYPES.values(), RackType(), QueriedType())
EXAMPLES: Mapping[str, Mapping[str, Any]] = {each.NAME: each.EXAMPLE for each in ALL}
"""The parameters of a valid request, by resource type."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with two hosts in the freepool, the flavor of the example, and all types."""
    names = [*TYPES, f"{OWN}:RackType", f"{OWN}:QueriedType"]
    with running(tmp_path_factory.mktemp("data"), lease_resource_types=names) as found:
        made = post(found, "/compute/v2.1/os-agents", {"agent": {"name": "rack", "driver": "fake"}})
        totals = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 16384}, "DISK_GB": {"total": 100}}
        hosts = [{"name": name, "inventories": totals} for name in ("one", "two")]
        path = f"/compute/v2.1/os-agents/{made['agent']['id']}/hosts"
        assert found.call("PUT", path, json={"hosts": hosts}).is_success
        for each in hosts:
            post(found, "/reservation/v1/os-hosts", {"name": each["name"]})
        size = {"ram": 1024, "vcpus": 2, "disk": 10}
        post(found, "/compute/v2.1/flavors", {"flavor": {"name": "m1", "id": "m1", **size}})
        yield found


def post(service: Running, path: str, body: Any) -> Any:
    answer = service.call("POST", path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


def asked(service: Running, name: str, **more: Any) -> Any:
    """Ask about the example of a type; in a query, all its parameters are texts."""
    query = {key: "" if given is None else given for key, given in EXAMPLES[name].items()}
    if "amount" in more:
        # An amount of whole hosts stands for both.
        query = {key: value for key, value in query.items() if key not in ("min", "max")}
    query |= {"resource_type": name, **more}
    return service.call("GET", "/reservation/v1/availability", "ann:lab", params=query)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_each_type_is_answered(service: Running, name: str) -> None:
    answer = asked(service, name, duration_minutes=60)
    assert answer.status_code == 200, answer.text
    found = answer.json()["availability"]
    assert found["intervals"][0]["free"] >= 2
    assert found["earliest"]["amount"] == 1


@pytest.mark.parametrize("name", [*TYPES, "test:queried"])
def test_an_amount_is_the_number_of_units(service: Running, name: str) -> None:
    answer = asked(service, name, duration_minutes=60, amount=2)
    assert answer.json()["availability"]["earliest"]["amount"] == 2


@pytest.mark.parametrize("amount", ["0", "100001", "x", "-1", "1.0"])
def test_a_wrong_amount_is_refused(service: Running, amount: str) -> None:
    for name in EXAMPLES:
        answer = asked(service, name, amount=amount)
        assert answer.status_code == 400
        assert answer.json()["error_message"].startswith("Malformed parameter amount")
