"""Who replaces hosts has no more of them than he pays for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from innkeeper.domain.errors import Conflict, QuotaExceeded
from innkeeper.domain.pclouds import BillingPeriod, PcloudHost
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts as machines
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import billing_periods, hosts, pclouds
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operations import Landlord

Taken = tuple[Landlord, str, str]


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[Taken]:
    """A pcloud with a host that its owner has disabled, and the machine's name; one is free."""
    landlord = Landlord(Movers(tmp_path, reported("a1"), reported("b1")))
    landlord.define("large", 1)
    for name in ("a1", "b1"):
        landlord.switch_service(name, ServiceChange(is_disabled=True))
        landlord.pool("large", name, by_aggregate=False)
    uuid = landlord.create("project", name="p")
    landlord.allocate(uuid, HostRequest("one", "large", None, True))
    (member,) = members_of(landlord, uuid)
    landlord.movers.boot(member.hostname, hints={"pcloud": uuid})
    landlord.switch(uuid, "one", is_enabled=False)
    yield landlord, uuid, member.hostname
    landlord.movers.close()


def members_of(landlord: Landlord, uuid: str) -> list[PcloudHost]:
    """The hosts of a pcloud."""

    def look(tx: Tx) -> list[PcloudHost]:
        return hosts.page(tx, pclouds.get(tx, uuid))

    found: list[PcloudHost] = landlord.cloud.read(look)
    return found


def replace(landlord: Landlord, uuid: str, name: str = "one") -> None:
    landlord.act(uuid, lambda tx, pcloud, terms: hosts.replace(tx, pcloud, name, terms))


def test_one_that_is_in_order_is_not_kept_free_of_charge(taken: Taken) -> None:
    landlord, uuid, _ = taken
    with pytest.raises(Conflict, match="is in order, and not empty"):
        replace(landlord, uuid)
    assert [each.units for each in members_of(landlord, uuid)] == [1]


@pytest.mark.parametrize(
    "change", [ServiceChange(is_forced_down=True), ServiceChange(is_disabled=True), None]
)
def test_a_broken_one_is_left_behind_with_its_servers(
    taken: Taken, change: ServiceChange | None
) -> None:
    landlord, uuid, hostname = taken
    if change is None:
        landlord.maintain("large", hostname, "smoke")
    else:
        landlord.switch_service(hostname, change)
    replace(landlord, uuid)
    told = [(each.name, each.units) for each in members_of(landlord, uuid)]
    assert told == [("one", 1), ("one~1", 0)]


def turn(landlord: Landlord) -> int:
    """What the service does now and then about hosts that were replaced."""
    count = landlord.look_after_replaced()
    landlord.movers.judge()
    return count


@pytest.mark.parametrize("is_in_maintenance", [True, False])
def test_one_that_is_in_order_again_is_paid_for_until_it_is_empty(
    taken: Taken, is_in_maintenance: bool
) -> None:
    landlord, uuid, hostname = taken
    landlord.set_quota("project", 1)
    if is_in_maintenance:
        landlord.maintain("large", hostname, "smoke")
    else:
        landlord.movers.wait(601, silent=hostname[0])
    replace(landlord, uuid)
    assert turn(landlord) == 0
    if is_in_maintenance:
        landlord.maintain("large", hostname, None)
    else:
        landlord.movers.wait(1)
    assert turn(landlord) == 1
    assert turn(landlord) == 0
    told = [(each.name, each.units) for each in members_of(landlord, uuid)]
    assert told == [("one", 1), ("one~1", 1)]
    assert [each.units for each in runs_of(landlord) if each.ended_at is None] == [1, 1]
    # More than the quota: nothing new is had, and nothing is taken away.
    with pytest.raises(QuotaExceeded):
        landlord.allocate(uuid, HostRequest("two", "large"))
    (server,) = landlord.cloud.read(lambda tx: machines.residents(tx, [hostname]))[hostname]
    landlord.movers.delete(server[0])
    landlord.movers.finish()
    turn(landlord)
    assert [each.name for each in members_of(landlord, uuid)] == ["one"]
    assert [each.host_name for each in runs_of(landlord) if each.ended_at is None] == ["one"]


def test_one_that_costs_nothing_is_paid_for_when_it_costs_something(taken: Taken) -> None:
    landlord, uuid, hostname = taken
    landlord.maintain("large", hostname, "smoke")
    replace(landlord, uuid)
    landlord.maintain("large", hostname, None)
    landlord.redefine("large", 0, by_aggregate=False)
    assert turn(landlord) == 0
    landlord.redefine("large", 3, by_aggregate=False)
    assert turn(landlord) == 1
    assert [each.units for each in members_of(landlord, uuid)] == [1, 3]


def test_those_that_cost_nothing_keep_no_others_from_being_paid_for(tmp_path: Path) -> None:
    landlord = Landlord(Movers(tmp_path, *map(reported, ("a1", "a2", "b1", "b2"))))
    uuid = landlord.create("project", name="p")
    for flavor, units, machines_ in (("free", 0, ("a1", "a2")), ("large", 1, ("b1", "b2"))):
        landlord.define(flavor, units)
        for name in machines_:
            landlord.switch_service(name, ServiceChange(is_disabled=True))
            landlord.pool(flavor, name, by_aggregate=False)
        landlord.allocate(uuid, HostRequest(flavor, flavor, None, True))
        member = next(each for each in members_of(landlord, uuid) if each.name == flavor)
        landlord.movers.boot(member.hostname, hints={"pcloud": uuid})
        landlord.maintain(flavor, member.hostname, "smoke")
        replace(landlord, uuid, flavor)
        landlord.maintain(flavor, member.hostname, None)
    assert landlord.look_after_replaced(1) == 1
    landlord.movers.judge()
    told = {each.name: each.units for each in members_of(landlord, uuid)}
    assert told == {"free": 0, "free~1": 0, "large": 1, "large~1": 1}
    landlord.movers.close()


def runs_of(landlord: Landlord) -> list[BillingPeriod]:
    """All that was ever paid for."""
    now = landlord.movers.now
    found: list[BillingPeriod] = landlord.cloud.read(
        lambda tx: billing_periods.page(
            tx, now - timedelta(days=1), now + timedelta(days=1), project_id=None, limit=99
        )
    )
    return found
