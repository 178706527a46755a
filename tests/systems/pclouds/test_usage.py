"""What whole hosts cost: units of the allocation by the hours from then to the release."""

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
from tests.support.pcloud_operations import Landlord

HOUR_S = 3600.0
FAR = timedelta(days=365)
UNITS = 2


@pytest.fixture
def landlord(tmp_path: Path) -> Iterator[Landlord]:
    """Two hosts in a pool, of two units each."""
    movers = Movers(tmp_path, reported("a1"), reported("a2"))
    made = Landlord(movers)
    made.define("gold", UNITS)
    for name in ("a1", "a2"):
        made.switch_service(name, ServiceChange(is_disabled=True))
        made.pool("gold", name, by_aggregate=False)
    yield made
    movers.judge()
    movers.close()


def usages(
    landlord: Landlord, start: datetime = NOW - FAR, stop: datetime | None = None
) -> list[PcloudUsage]:
    stop = landlord.movers.now if stop is None else stop
    found = landlord.cloud.read(
        lambda tx: billing_periods.page(tx, start, stop, project_id=None, limit=100)
    )
    return billing_periods.by_project(found, start, stop)


def release(landlord: Landlord, uuid: str, name: str) -> None:
    landlord.act_on(uuid, name, hosts.release)


def test_a_host_that_nobody_uses_costs_its_units_from_allocation_to_release(
    landlord: Landlord,
) -> None:
    uuid = landlord.create("lab", name="mine")
    landlord.movers.wait(HOUR_S)
    landlord.allocate(uuid, HostRequest("a", "gold"))
    landlord.movers.wait(5 * HOUR_S)
    release(landlord, uuid, "a")
    landlord.movers.wait(7 * HOUR_S)
    (usage,) = usages(landlord)
    (run,) = usage.runs
    assert (usage.project_id, run.host_name, run.units) == ("lab", "a", UNITS)
    assert usage.host_hours == pytest.approx(5)
    assert usage.unit_hours == pytest.approx(5 * UNITS)


def test_a_host_that_is_not_released_yet_costs_up_to_now(landlord: Landlord) -> None:
    uuid = landlord.create("lab", name="mine")
    landlord.allocate(uuid, HostRequest("a", "gold"))
    landlord.movers.wait(3 * HOUR_S)
    (usage,) = usages(landlord)
    assert usage.host_hours == pytest.approx(3)


def test_of_a_period_its_part_counts(landlord: Landlord) -> None:
    uuid = landlord.create("lab", name="mine")
    landlord.allocate(uuid, HostRequest("a", "gold"))
    landlord.movers.wait(10 * HOUR_S)
    release(landlord, uuid, "a")
    begin, hour = NOW, timedelta(hours=1)
    (usage,) = usages(landlord, begin + 2 * hour, begin + 5 * hour)
    assert usage.host_hours == pytest.approx(3)
    assert usages(landlord, begin - 2 * hour, begin) == []
    assert usages(landlord, begin + 10 * hour, begin + 12 * hour) == []


def test_dearer_flavors_cost_more_from_the_next_allocation_on(landlord: Landlord) -> None:
    uuid = landlord.create("lab", name="mine")
    landlord.allocate(uuid, HostRequest("a", "gold"))
    landlord.redefine("gold", UNITS - 1, by_aggregate=False)
    landlord.allocate(uuid, HostRequest("b", "gold"))
    landlord.movers.wait(HOUR_S)
    (usage,) = usages(landlord)
    assert usage.host_hours == pytest.approx(2)
    assert usage.unit_hours == pytest.approx(UNITS + UNITS - 1)


def test_who_is_given_a_pcloud_pays_from_then_on(landlord: Landlord) -> None:
    uuid = landlord.create("lab", name="mine")
    landlord.allocate(uuid, HostRequest("a", "gold"))
    landlord.movers.wait(HOUR_S)
    landlord.act(uuid, lambda tx, pcloud, terms: pclouds.transfer(tx, pcloud, "shop", terms))
    landlord.movers.wait(2 * HOUR_S)
    hours = {each.project_id: each.host_hours for each in usages(landlord)}
    assert hours == {"lab": pytest.approx(1), "shop": pytest.approx(2)}


def test_a_replaced_host_costs_nothing_any_more(landlord: Landlord) -> None:
    uuid = landlord.create("lab", name="mine")
    landlord.allocate(uuid, HostRequest("a", "gold", is_enabled=True))
    server = landlord.movers.boot(None, project_id="lab", hints={"pcloud": uuid})
    landlord.movers.wait(HOUR_S)
    lost = landlord.movers.state(server)[2]
    assert lost is not None
    landlord.switch_service(lost, ServiceChange(is_forced_down=True))
    landlord.act(uuid, lambda tx, pcloud, terms: hosts.replace(tx, pcloud, "a", terms))
    landlord.movers.wait(2 * HOUR_S)
    (usage,) = usages(landlord)
    assert [each.ended_at is None for each in usage.runs] == [False, True]
    assert usage.host_hours == pytest.approx(3)


def test_no_moment_is_paid_for_twice_when_a_clock_goes_back(landlord: Landlord) -> None:
    landlord.maintain("gold", "a2", "smoke")
    uuid = landlord.create("lab", name="mine")
    landlord.allocate(uuid, HostRequest("a", "gold"))
    landlord.movers.wait(3 * HOUR_S)
    release(landlord, uuid, "a")
    landlord.movers.now -= timedelta(hours=2)
    landlord.allocate(uuid, HostRequest("b", "gold"))
    landlord.movers.wait(HOUR_S)
    (usage,) = usages(landlord, stop=NOW + FAR)
    assert [each.host_name for each in usage.runs] == ["a", "b"]
    first, second = usage.runs
    assert second.started_at == first.ended_at == NOW + timedelta(hours=3)
    release(landlord, uuid, "b")
    (usage,) = usages(landlord, stop=NOW + FAR)
    assert usage.host_hours == pytest.approx(3)
