"""Hosts of the freepool: capabilities, properties, allocations, and hosts that leave at a date."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.errors import Conflict, Invalid, NotEnough, NotFound, Overtaken
from innkeeper.domain.leases import ChosenHost, Demand, FreepoolHost, Lease, LeaseStatus, Window
from innkeeper.domain.moves import Initiator
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import (
    booking,
    capabilities,
    draining,
    freepool,
    host_reservations,
    resource_properties,
)
from innkeeper.systems.leases.freepool import HostChange
from innkeeper.systems.leases.host_reservations import HostReservationFilter
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers

HOUR_S = 3600.0
HOUR = timedelta(hours=1)
GPU = '["==", "$gpu", "a100"]'
ANY = HostReservationFilter()


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Two hosts in the freepool, a1 and b1, and an ordinary one, a2."""
    made = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1", "a2"))))
    made.keep("a1", "b1")
    yield made
    made.turn()
    assert made.broken() == []
    made.movers.close()


def row(operator: LeaseOperator, name: str) -> int:
    return operator.cloud.host(name).id


def change(operator: LeaseOperator, name: str, **wanted: Any) -> FreepoolHost:
    """Change capabilities of a host."""
    host_id = row(operator, name)
    found: FreepoolHost = operator.cloud.write(
        lambda tx: freepool.change(tx, host_id, HostChange(wanted), operator.now)
    )
    return found


def drain(operator: LeaseOperator, name: str, leaves_at: datetime | None) -> FreepoolHost:
    """Let a host leave the freepool at a date."""
    host_id, wanted = row(operator, name), HostChange({}, True, leaves_at)
    found: FreepoolHost = operator.cloud.write(
        lambda tx: freepool.change(tx, host_id, wanted, operator.now)
    )
    return found


def leave(operator: LeaseOperator) -> int:
    """Run the periodic task for hosts that leave."""
    return int(operator.cloud.write(partial(draining.let_leave, now=operator.now)))


def window(operator: LeaseOperator, start: float, end: float) -> Window:
    """A window, in hours from now."""
    return Window(operator.now + start * HOUR, operator.now + end * HOUR)


def requiring(text: str, least: int = 1, most: int = 1) -> Demand:
    return Demand(least, most, requirements=(text,))


def lease_of(operator: LeaseOperator, text: str, start: float, end: float) -> Lease:
    """A lease of one host, in hours from now."""
    return operator.make(window(operator, start, end), [requiring(text)])


def facts(operator: LeaseOperator, name: str) -> Mapping[str, Any]:
    """The facts of a host in the calendar of the host table."""
    calendar = operator.cloud.table.calendar
    return calendar.hosts[calendar.index_of[operator.cloud.host(name).provider_id]].facts


def in_freepool(operator: LeaseOperator) -> list[str]:
    found: list[FreepoolHost] = operator.cloud.read(lambda tx: freepool.page(tx, limit=9))
    return [each.name for each in found]


def test_changes_reach_the_calendar_and_keep_what_is_not_named(operator: LeaseOperator) -> None:
    assert change(operator, "a1", gpu="a100", gpus=4).capabilities == {"gpu": "a100", "gpus": 4}
    assert change(operator, "a1", gpus=None, rack="7").capabilities == {"gpu": "a100", "rack": "7"}
    operator.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    assert (facts(operator, "a1")["gpu"], facts(operator, "a1").get("gpus")) == ("a100", None)
    assert "gpu" not in facts(operator, "b1")


def test_a_new_version_of_a_hypervisor_reaches_the_calendar(operator: LeaseOperator) -> None:
    old, new = '["==", "$hypervisor_version", "1"]', '[">=", "$hypervisor_version", "7"]'
    operator.movers.report(reported("a1", host_version=7))
    operator.movers.report(reported("b1", host_version=7))
    with pytest.raises(NotEnough):
        lease_of(operator, old, 1, 2)
    (part,) = lease_of(operator, new, 1, 2).reservations
    assert part.units_max == 1


def test_a_change_to_what_is_there_changes_nothing(operator: LeaseOperator) -> None:
    before = change(operator, "a1", gpu="a100")
    operator.movers.now += HOUR
    assert change(operator, "a1", gpu="a100", rack=None) == before


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"a" * 65: "x"}, "Extra capability key too long"),
        ({"id": "x"}, "reserved"),
        ({"traits": "x"}, "reserved"),
        ({"a$": "x"}, "printable"),
        ({"a/b": "x"}, "printable"),
        ({" a": "x"}, "printable"),
        ({"a\n": "x"}, "printable"),
        ({"": "x"}, "printable"),
        ({"a.json": "x"}, "printable"),
        ({"a": True}, "a text of at most"),
        ({"a": ["x"]}, "a text of at most"),
        ({"a": {"x": 1}}, "a text of at most"),
        ({"a": "x" * 1001}, "a text of at most"),
        ({"a": "x\0"}, "a text of at most"),
        ({"a": 2**53 + 1}, "a text of at most"),
        ({f"a{number}": 1 for number in range(101)}, "at most 100 capabilities"),
    ],
)
def test_wrong_capabilities_are_refused(
    operator: LeaseOperator, given: Mapping[str, Any], text: str
) -> None:
    with pytest.raises(Invalid, match=text):
        change(operator, "a1", **given)
    add = partial(freepool.add, name="a2", capabilities=given, aggregate="pool", now=operator.now)
    with pytest.raises(Invalid, match=text):
        operator.cloud.write(add)
    assert in_freepool(operator) == ["a1", "b1"]
    listed = operator.cloud.read(lambda tx: resource_properties.listing(tx, with_private=True))
    assert listed == []


def test_a_capability_that_a_lease_requires_stays_until_its_end(operator: LeaseOperator) -> None:
    change(operator, "a1", gpu="a100", rack="7")
    lease = lease_of(operator, GPU, 1, 2)
    assert operator.held(lease) == {"a1"}
    for wanted in ({"gpu": "h100"}, {"gpu": None}, {"gpu": None, "rack": "8"}):
        with pytest.raises(Conflict, match=r"Can't add extracapabilities \['gpu'\] to Host "):
            change(operator, "a1", **wanted)
    assert change(operator, "a1", rack="8").capabilities == {"gpu": "a100", "rack": "8"}
    assert change(operator, "b1", gpu="v100").capabilities == {"gpu": "v100"}
    operator.wait(HOUR_S)
    with pytest.raises(Conflict):
        change(operator, "a1", gpu="h100")
    operator.wait(HOUR_S)
    assert change(operator, "a1", gpu="h100").capabilities["gpu"] == "h100"


def test_requirements_of_flavors_count_too() -> None:
    given = {"requirements": ['["in", "GPU", "$traits"]'], "resource_properties": GPU}
    assert capabilities.named_in(capabilities.texts(given)) == {"traits", "gpu"}
    assert capabilities.named_in(capabilities.texts({"hypervisor_properties": None})) == set()


def test_a_lease_that_was_decided_before_a_change_is_overtaken(operator: LeaseOperator) -> None:
    """The process that decided may not have read the change yet."""
    change(operator, "a1", gpu="a100")
    host, when = operator.cloud.host("a1"), window(operator, 1, 2)
    chosen = [[ChosenHost(host.id, host.provider_id, host.provider_uuid, 1)]]

    def claim(tx: Tx, demand: Demand) -> None:
        booking.claim(tx, [demand], chosen, when, operator.context())

    operator.cloud.write(partial(claim, demand=requiring(GPU)))
    change(operator, "a1", gpu="v100")
    with pytest.raises(Overtaken):
        operator.cloud.write(partial(claim, demand=requiring(GPU)))
    operator.cloud.write(partial(claim, demand=Demand(1, 1)))
    drain(operator, "a1", when.end - timedelta(minutes=1))
    with pytest.raises(Overtaken):
        operator.cloud.write(partial(claim, demand=Demand(1, 1)))
    drain(operator, "a1", when.end)
    operator.cloud.write(partial(claim, demand=Demand(1, 1)))


# -- properties ------------------------------------------------------------------------------


def listed(operator: LeaseOperator, *, with_private: bool) -> dict[str, tuple[str, ...]]:
    found = operator.cloud.read(
        lambda tx: resource_properties.listing(tx, with_private=with_private)
    )
    return {each.property.name: each.values for each in found}


def make_private(operator: LeaseOperator, name: str, is_private: bool) -> None:
    act = partial(
        resource_properties.set_private, name=name, is_private=is_private, now=operator.now
    )
    operator.cloud.write(act)


def test_a_property_remembers_that_it_is_private(operator: LeaseOperator) -> None:
    change(operator, "a1", gpu="a100", rack=7)
    change(operator, "b1", gpu="v100")
    make_private(operator, "rack", True)
    assert listed(operator, with_private=False) == {"gpu": ("a100", "v100")}
    assert listed(operator, with_private=True) == {"gpu": ("a100", "v100"), "rack": ("7",)}
    change(operator, "a1", rack=None)
    assert listed(operator, with_private=True) == {"gpu": ("a100", "v100")}
    change(operator, "b1", rack=8)
    assert listed(operator, with_private=False).keys() == {"gpu"}
    make_private(operator, "rack", False)
    assert listed(operator, with_private=False).keys() == {"gpu", "rack"}
    with pytest.raises(NotFound, match="Resource property 'colour' not found!"):
        make_private(operator, "colour", True)


def test_private_properties_are_for_administrators(operator: LeaseOperator) -> None:
    change(operator, "a1", gpu="a100")
    lease = lease_of(operator, GPU, 1, 2)
    make_private(operator, "gpu", True)
    with pytest.raises(Invalid, match=r"no host has a property gpu\."):
        lease_of(operator, GPU, 3, 4)
    admin = replace(operator.context(), initiator=Initiator("req-1", "p", "u", is_admin=True))

    def look(tx: Tx) -> None:
        resource_properties.demand_visible(tx, [requiring(GPU)], admin)
        # A lease keeps its earlier requirements.
        resource_properties.demand_visible(tx, [requiring(GPU)], operator.context(), lease)

    operator.cloud.read(look)


# -- allocations -----------------------------------------------------------------------------


def test_allocations_of_leases_that_are_over_need_a_filter(operator: LeaseOperator) -> None:
    lease = operator.lease((2, 2), end=HOUR_S)
    (reservation,) = lease.reservations
    server = operator.movers.boot("a1", hints={"reservation": reservation.uuid})
    next_one = operator.lease((2, 2), start=2 * HOUR_S, end=3 * HOUR_S)
    operator.wait(HOUR_S)
    assert operator.status(lease) == LeaseStatus.ENDING
    a1, b1 = row(operator, "a1"), row(operator, "b1")

    def look(wanted: HostReservationFilter, after: int = 0) -> dict[int, list[str]]:
        found = operator.cloud.read(
            lambda tx: host_reservations.page(tx, wanted, after=after, limit=9)
        )
        return {host: [each.lease_uuid for each in some] for host, some in found.items()}

    assert look(ANY) == {a1: [next_one.uuid], b1: [next_one.uuid]}
    assert look(HostReservationFilter(lease.uuid)) == {a1: [lease.uuid]}
    assert look(HostReservationFilter(None, reservation.uuid)) == {a1: [lease.uuid]}
    assert look(HostReservationFilter(next_one.uuid, reservation.uuid)) == {}
    assert look(ANY, after=a1) == {b1: [next_one.uuid]}
    operator.movers.tell("destroy", server)
    operator.turn()
    operator.delete(next_one)
    assert look(ANY) == {a1: [], b1: []}
    with pytest.raises(NotFound):
        operator.cloud.read(lambda tx: host_reservations.of_host(tx, row(operator, "a2"), ANY))


# -- hosts that leave ------------------------------------------------------------------------


def test_a_host_leaves_when_its_date_has_come_and_it_is_empty(operator: LeaseOperator) -> None:
    lease = operator.lease((2, 2), end=HOUR_S)
    until = lease.end_at
    with pytest.raises(Conflict, match=r"cannot leave the freepool before .*, because"):
        drain(operator, "a1", until - timedelta(minutes=1))
    assert drain(operator, "a1", until).leaves_at == until
    with pytest.raises(Conflict, match="Not enough hosts available"):
        operator.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    server = operator.movers.boot("a1", hints={"reservation": lease.reservations[0].uuid})
    assert leave(operator) == 0
    operator.wait(HOUR_S)
    assert (leave(operator), in_freepool(operator)) == (0, ["a1", "b1"])
    operator.movers.tell("destroy", server)
    assert (leave(operator), in_freepool(operator)) == (0, ["a1", "b1"])
    operator.turn()
    assert (leave(operator), in_freepool(operator)) == (1, ["b1"])
    assert operator.said("a1") == [(None, None)]
    assert leave(operator) == 0


def test_a_host_may_stay_after_all(operator: LeaseOperator) -> None:
    drain(operator, "a1", operator.now + HOUR)
    with pytest.raises(Conflict, match="Not enough hosts available"):
        operator.lease((2, 2), end=2 * HOUR_S)
    assert change(operator, "a1", gpu="a100").leaves_at == operator.now + HOUR
    assert drain(operator, "a1", None).leaves_at is None
    operator.wait(HOUR_S)
    assert (leave(operator), in_freepool(operator)) == (0, ["a1", "b1"])


def test_hosts_with_slots_that_are_not_returned_stay(operator: LeaseOperator) -> None:
    slot = Demand(1, 1, {"VCPU": 1})
    lease = operator.make(window(operator, 0, 1), [slot])
    (name,) = operator.held(lease)
    drain(operator, name, lease.end_at)
    operator.movers.now += HOUR
    assert leave(operator) == 0
    with pytest.raises(Conflict, match="The host is reserved"):
        operator.let_go(name)
    operator.turn()
    assert leave(operator) == 1


def test_servers_on_a_host_are_named(operator: LeaseOperator) -> None:
    server = operator.movers.boot("a2")
    with pytest.raises(Conflict, match=rf"Servers \[{server}\] found for host a2"):
        operator.keep("a2")
    assert in_freepool(operator) == ["a1", "b1"]
