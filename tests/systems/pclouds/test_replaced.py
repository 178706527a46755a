"""A project that replaces hosts never has more hosts than it pays for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from innkeeper.domain.errors import Conflict, QuotaExceeded
from innkeeper.domain.pclouds import BillingPeriod, PcloudHost
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts as compute_hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import billing_periods, hosts, pclouds
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator

Taken = tuple[PcloudOperator, str, str]


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[Taken]:
    """A pcloud with a host that its owner has disabled, and its machine; another host is free."""
    operator = PcloudOperator(Movers(tmp_path, reported("a1"), reported("b1")))
    operator.define("large", 1)
    for name in ("a1", "b1"):
        operator.switch_service(name, ServiceChange(is_disabled=True))
        operator.pool("large", name, by_aggregate=False)
    uuid = operator.create("project", name="p")
    operator.allocate(uuid, HostRequest("one", "large", None, True))
    (member,) = members_of(operator, uuid)
    operator.movers.boot(member.hostname, hints={"pcloud": uuid})
    operator.switch(uuid, "one", is_enabled=False)
    yield operator, uuid, member.hostname
    operator.movers.close()


def members_of(operator: PcloudOperator, uuid: str) -> list[PcloudHost]:
    """The hosts of a pcloud."""

    def look(tx: Tx) -> list[PcloudHost]:
        return hosts.page(tx, pclouds.get(tx, uuid))

    found: list[PcloudHost] = operator.cloud.read(look)
    return found


def replace(operator: PcloudOperator, uuid: str, name: str = "one") -> None:
    operator.act(uuid, lambda tx, pcloud, context: hosts.replace(tx, pcloud, name, context))


def test_a_working_host_cannot_be_replaced_and_kept_for_free(taken: Taken) -> None:
    operator, uuid, _ = taken
    with pytest.raises(Conflict, match="works, and is not empty"):
        replace(operator, uuid)
    assert [each.units for each in members_of(operator, uuid)] == [1]


@pytest.mark.parametrize(
    "change", [ServiceChange(is_forced_down=True), ServiceChange(is_disabled=True), None]
)
def test_a_broken_host_is_replaced_with_its_servers_left(
    taken: Taken, change: ServiceChange | None
) -> None:
    operator, uuid, hostname = taken
    if change is None:
        operator.maintain("large", hostname, "smoke")
    else:
        operator.switch_service(hostname, change)
    replace(operator, uuid)
    told = [(each.name, each.units) for each in members_of(operator, uuid)]
    assert told == [("one", 1), ("one~1", 0)]


def turn(operator: PcloudOperator) -> int:
    """The service's periodic work on replaced hosts."""
    count = operator.look_after_replaced()
    operator.movers.judge()
    return count


@pytest.mark.parametrize("is_in_maintenance", [True, False])
def test_a_replaced_host_that_works_again_is_paid_for_until_empty(
    taken: Taken, is_in_maintenance: bool
) -> None:
    operator, uuid, hostname = taken
    operator.set_quota("project", 1)
    if is_in_maintenance:
        operator.maintain("large", hostname, "smoke")
    else:
        operator.movers.wait(601, silent=hostname[0])
    replace(operator, uuid)
    assert turn(operator) == 0
    if is_in_maintenance:
        operator.maintain("large", hostname, None)
    else:
        operator.movers.wait(1)
    assert turn(operator) == 1
    assert turn(operator) == 0
    told = [(each.name, each.units) for each in members_of(operator, uuid)]
    assert told == [("one", 1), ("one~1", 1)]
    assert [each.units for each in runs_of(operator) if each.ended_at is None] == [1, 1]
    # Above the quota: no allocation succeeds, and no host is taken away.
    with pytest.raises(QuotaExceeded):
        operator.allocate(uuid, HostRequest("two", "large"))
    (server,) = operator.cloud.read(lambda tx: compute_hosts.residents(tx, [hostname]))[hostname]
    operator.movers.delete(server[0])
    operator.movers.finish()
    turn(operator)
    assert [each.name for each in members_of(operator, uuid)] == ["one"]
    assert [each.host_name for each in runs_of(operator) if each.ended_at is None] == ["one"]


def test_a_replaced_host_is_charged_once_its_flavor_has_units(taken: Taken) -> None:
    operator, uuid, hostname = taken
    operator.maintain("large", hostname, "smoke")
    replace(operator, uuid)
    operator.maintain("large", hostname, None)
    operator.redefine("large", 0, by_aggregate=False)
    assert turn(operator) == 0
    operator.redefine("large", 3, by_aggregate=False)
    assert turn(operator) == 1
    assert [each.units for each in members_of(operator, uuid)] == [1, 3]


def test_replaced_hosts_without_units_do_not_delay_charging_others(tmp_path: Path) -> None:
    operator = PcloudOperator(Movers(tmp_path, *map(reported, ("a1", "a2", "b1", "b2"))))
    uuid = operator.create("project", name="p")
    for flavor, units, machines_ in (("free", 0, ("a1", "a2")), ("large", 1, ("b1", "b2"))):
        operator.define(flavor, units)
        for name in machines_:
            operator.switch_service(name, ServiceChange(is_disabled=True))
            operator.pool(flavor, name, by_aggregate=False)
        operator.allocate(uuid, HostRequest(flavor, flavor, None, True))
        member = next(each for each in members_of(operator, uuid) if each.name == flavor)
        operator.movers.boot(member.hostname, hints={"pcloud": uuid})
        operator.maintain(flavor, member.hostname, "smoke")
        replace(operator, uuid, flavor)
        operator.maintain(flavor, member.hostname, None)
    assert operator.look_after_replaced(1) == 1
    operator.movers.judge()
    told = {each.name: each.units for each in members_of(operator, uuid)}
    assert told == {"free": 0, "free~1": 0, "large": 1, "large~1": 1}
    operator.movers.close()


def runs_of(operator: PcloudOperator) -> list[BillingPeriod]:
    """All billing periods."""
    now = operator.movers.now
    found: list[BillingPeriod] = operator.cloud.read(
        lambda tx: billing_periods.page(
            tx, now - timedelta(days=1), now + timedelta(days=1), project_id=None, limit=99
        )
    )
    return found
