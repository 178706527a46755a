"""Costs of whole hosts: units at the allocation, times the hours until the release."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import billing_periods, hosts, pclouds
from innkeeper.systems.pclouds.billing_periods import PcloudUsage
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import NOW, reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator

HOUR_S = 3600.0
FAR = timedelta(days=365)
UNITS = 2


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[PcloudOperator]:
    """Two hosts in a pool, of two units each."""
    movers = Movers(tmp_path, reported("a1"), reported("a2"))
    made = PcloudOperator(movers)
    made.define("gold", UNITS)
    for name in ("a1", "a2"):
        made.switch_service(name, ServiceChange(is_disabled=True))
        made.pool("gold", name, by_aggregate=False)
    yield made
    movers.judge()
    movers.close()


def usages(
    operator: PcloudOperator, start: datetime = NOW - FAR, stop: datetime | None = None
) -> list[PcloudUsage]:
    stop = operator.movers.now if stop is None else stop
    found = operator.cloud.read(
        lambda tx: billing_periods.page(tx, start, stop, project_id=None, limit=100)
    )
    return billing_periods.by_project(found, start, stop)


def release(operator: PcloudOperator, uuid: str, name: str) -> None:
    operator.act_on(uuid, name, hosts.release)


def test_an_unused_host_costs_its_units_from_allocation_to_release(
    operator: PcloudOperator,
) -> None:
    uuid = operator.create("lab", name="mine")
    operator.movers.wait(HOUR_S)
    operator.allocate(uuid, HostRequest("a", "gold"))
    operator.movers.wait(5 * HOUR_S)
    release(operator, uuid, "a")
    operator.movers.wait(7 * HOUR_S)
    (usage,) = usages(operator)
    (run,) = usage.periods
    assert (usage.project_id, run.host_name, run.units) == ("lab", "a", UNITS)
    assert usage.host_hours == pytest.approx(5)
    assert usage.unit_hours == pytest.approx(5 * UNITS)


def test_a_host_that_is_not_released_yet_costs_up_to_now(operator: PcloudOperator) -> None:
    uuid = operator.create("lab", name="mine")
    operator.allocate(uuid, HostRequest("a", "gold"))
    operator.movers.wait(3 * HOUR_S)
    (usage,) = usages(operator)
    assert usage.host_hours == pytest.approx(3)


def test_the_part_within_the_period_counts(operator: PcloudOperator) -> None:
    uuid = operator.create("lab", name="mine")
    operator.allocate(uuid, HostRequest("a", "gold"))
    operator.movers.wait(10 * HOUR_S)
    release(operator, uuid, "a")
    begin, hour = NOW, timedelta(hours=1)
    (usage,) = usages(operator, begin + 2 * hour, begin + 5 * hour)
    assert usage.host_hours == pytest.approx(3)
    assert usages(operator, begin - 2 * hour, begin) == []
    assert usages(operator, begin + 10 * hour, begin + 12 * hour) == []


def test_changed_units_apply_from_the_next_allocation(operator: PcloudOperator) -> None:
    uuid = operator.create("lab", name="mine")
    operator.allocate(uuid, HostRequest("a", "gold"))
    operator.redefine("gold", UNITS - 1, by_aggregate=False)
    operator.allocate(uuid, HostRequest("b", "gold"))
    operator.movers.wait(HOUR_S)
    (usage,) = usages(operator)
    assert usage.host_hours == pytest.approx(2)
    assert usage.unit_hours == pytest.approx(UNITS + UNITS - 1)


def test_the_new_owner_pays_from_the_transfer_on(operator: PcloudOperator) -> None:
    uuid = operator.create("lab", name="mine")
    operator.allocate(uuid, HostRequest("a", "gold"))
    operator.movers.wait(HOUR_S)
    operator.act(uuid, lambda tx, pcloud, context: pclouds.transfer(tx, pcloud, "shop", context))
    operator.movers.wait(2 * HOUR_S)
    hours = {each.project_id: each.host_hours for each in usages(operator)}
    assert hours == {"lab": pytest.approx(1), "shop": pytest.approx(2)}


def test_a_replaced_host_costs_nothing(operator: PcloudOperator) -> None:
    uuid = operator.create("lab", name="mine")
    operator.allocate(uuid, HostRequest("a", "gold", is_enabled=True))
    server = operator.movers.boot(None, project_id="lab", hints={"pcloud": uuid})
    operator.movers.wait(HOUR_S)
    lost = operator.movers.state(server)[2]
    assert lost is not None
    operator.switch_service(lost, ServiceChange(is_forced_down=True))
    operator.act(uuid, lambda tx, pcloud, context: hosts.replace(tx, pcloud, "a", context))
    operator.movers.wait(2 * HOUR_S)
    (usage,) = usages(operator)
    assert [each.ended_at is None for each in usage.periods] == [False, True]
    assert usage.host_hours == pytest.approx(3)


def test_a_clock_that_goes_back_bills_no_moment_twice(operator: PcloudOperator) -> None:
    operator.maintain("gold", "a2", "smoke")
    uuid = operator.create("lab", name="mine")
    operator.allocate(uuid, HostRequest("a", "gold"))
    operator.movers.wait(3 * HOUR_S)
    release(operator, uuid, "a")
    operator.movers.now -= timedelta(hours=2)
    operator.allocate(uuid, HostRequest("b", "gold"))
    operator.movers.wait(HOUR_S)
    (usage,) = usages(operator, stop=NOW + FAR)
    assert [each.host_name for each in usage.periods] == ["a", "b"]
    first, second = usage.periods
    assert second.started_at == first.ended_at == NOW + timedelta(hours=3)
    release(operator, uuid, "b")
    (usage,) = usages(operator, stop=NOW + FAR)
    assert usage.host_hours == pytest.approx(3)
