"""The operator's own resource types: checked at the start, guarded later, and removed at last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.errors import Conflict, Invalid, PluginFailed, Refusal
from innkeeper.domain.leases import (
    RESOURCE_TYPES,
    EventRequest,
    Lease,
    LeaseEventKind,
    LeaseRequest,
    Window,
)
from innkeeper.domain.slices import Leasing
from innkeeper.store.tables.leases import lease_notifications
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import freepool, leases, rendering, updates
from innkeeper.systems.leases.freepool import HostChange
from innkeeper.systems.leases.resource_types import own
from innkeeper.systems.leases.resource_types.catalogue import BUILT_IN, TYPES, types_of
from innkeeper.systems.leases.updates import LeaseChange
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers
from tests.support.own_resource_types import SECRET, TROUBLES

OWN = "tests.support.own_resource_types"
RACK = f"{OWN}:RackType"
HOUR = timedelta(hours=1)
HARMLESS = {"refusal", "malformed"}
"""Failures that count as ordinary refusals."""


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Three hosts in the freepool, whose leases can have racks, and a webhook."""
    made = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1", "a2"))))
    made.keep("a1", "b1", "a2")
    made.types = made.cloud.read(lambda tx: types_of(tx, [*TYPES, RACK]))
    made.leasing = Leasing(lease_webhook_url="http://127.0.0.1:9/")
    yield made
    made.turn()
    assert made.broken() == []
    made.movers.close()


def racks(
    operator: LeaseOperator, racks: int = 1, start_h: int = 1, end_h: int = 2, **more: Any
) -> Lease:
    """Create a lease of racks."""
    uuid, context = operator.cloud.ids.uuid, operator.context()
    window = Window(operator.now + start_h * HOUR, operator.now + end_h * HOUR)
    events = (
        EventRequest(uuid(), LeaseEventKind.START, window.start),
        EventRequest(uuid(), LeaseEventKind.END, window.end),
    )
    given = {"resource_type": "test:rack", "racks": racks, **more}

    def work(tx: Tx, decision: DecisionContext) -> Lease:
        parts = context.types.resolve_all(tx, [given], [uuid()], "project")
        request = LeaseRequest(uuid(), "racks", "project", "user", window, parts, events)
        return leases.create(tx, decision, request, context)

    made: Lease = operator.cloud.decide(work, operator.now)
    return made


def change(operator: LeaseOperator, lease: Lease, **more: Any) -> Lease:
    """Change the parameters of a lease's only reservation."""
    wanted = LeaseChange(reservations={lease.reservations[0].uuid: more} if more else None)
    return change_to(operator, lease, wanted)


def change_to(operator: LeaseOperator, lease: Lease, wanted: LeaseChange) -> Lease:
    """Change a lease."""
    context = operator.context()

    def work(tx: Tx, decision: DecisionContext) -> Lease:
        return updates.change(tx, decision, leases.get(tx, lease.uuid), wanted, context)

    made: Lease = operator.cloud.decide(work, operator.now)
    return made


def shown(operator: LeaseOperator, lease: Lease) -> Any:
    """Return the only reservation of a lease, as the API shows it."""
    found = operator.cloud.read(lambda tx: leases.get(tx, lease.uuid))
    (part,) = rendering.shown(found, operator.types)["reservations"]
    return part


UNUSABLE = {
    "Nowhere": "cannot be imported (AttributeError",
    "Nameless": "has a NAME that is not a text of at most 64 letters",
    "Namesake": "has the NAME 'physical:host'",
    "Exampleless": "has no EXAMPLE with the parameters of a request",
    "FailsOnExample": f"fails on its EXAMPLE (RuntimeError: {SECRET})",
    "ShowsNothing": "fails on its EXAMPLE (WrongAnswer: shown returned list, not parameters",
    "NeedsArgument": "cannot be created (TypeError",
    "Incomplete": "has no resolve, changed, shown",
    "a_type": "is not a class",
}


def test_what_cannot_be_used_stops_the_start(operator: LeaseOperator) -> None:
    for name, why in UNUSABLE.items():
        assert why in start_error(operator, [*TYPES, f"{OWN}:{name}"])


def test_unknown_names_stop_the_start(operator: LeaseOperator) -> None:
    for names in (["physical:hosts"], [RACK, f"{OWN}:Later"]):
        start_error(operator, names)


def start_error(operator: LeaseOperator, names: list[str]) -> str:
    """Return why a start with these types fails."""
    with pytest.raises(ValueError, match="The setting 'lease_resource_types' is wrong") as wrong:
        operator.cloud.read(lambda tx: types_of(tx, names))
    return str(wrong.value)


def test_built_in_types_pass_the_trial_too(operator: LeaseOperator) -> None:
    for each in TYPES.values():
        assert operator.cloud.read(partial(own.why_unusable, own=each)) is None


def test_a_type_may_reject_its_example(operator: LeaseOperator) -> None:
    operator.cloud.read(lambda tx: types_of(tx, [f"{OWN}:RejectsExample"]))


def test_a_failure_fails_its_request_alone(operator: LeaseOperator) -> None:
    lease = racks(operator)
    before = rows(operator)
    for trouble in sorted(TROUBLES.keys() - HARMLESS):
        with pytest.raises(PluginFailed) as failed, capture_logs() as logs:
            racks(operator, trouble={"resolve": trouble})
        assert failed.value.message == (
            "The resource type test:rack failed. The operator can find the error in the log."
        )
        told = [(each["event"], each["plugin"]) for each in logs]
        assert told == [("plugin_failed", "test:rack")], trouble
        with pytest.raises(PluginFailed):
            change(operator, lease, trouble={"changed": trouble})
    assert rows(operator) == before
    assert change(operator, lease, racks=2).reservations[0].units_min == 2


def test_refusals_are_no_failures(operator: LeaseOperator) -> None:
    before = rows(operator)
    for trouble in HARMLESS:
        with pytest.raises(Refusal) as refused, capture_logs() as logs:
            racks(operator, trouble={"resolve": trouble})
        assert not isinstance(refused.value, PluginFailed)
        assert logs == []
    assert rows(operator) == before


def rows(operator: LeaseOperator) -> Any:
    """Return all notifications and leases."""
    return operator.cloud.read(
        lambda tx: (
            list(tx.execute(lease_notifications.select())),
            leases.page(tx, project_id=None, limit=100),
        )
    )


@pytest.mark.parametrize("trouble", ["error", "exit", "list", "nothing"])
def test_a_failing_description_stops_no_events(operator: LeaseOperator, trouble: str) -> None:
    with capture_logs() as logs:
        troubled = racks(operator, trouble={"shown": trouble})
        other = operator.lease(start=3600, end=7200)
        assert shown(operator, troubled)["racks"] == 1
        operator.wait(3600)
        assert [operator.status(each) for each in (troubled, other)] == ["active", "active"]
        operator.wait(3600)
        assert [operator.status(each) for each in (troubled, other)] == ["ended", "ended"]
    assert {each["plugin"] for each in logs if each["event"] == "plugin_failed"} == {"test:rack"}
    told = operator.cloud.read(lambda tx: list(tx.execute(lease_notifications.select())))
    payloads = [json.loads(each.payload) for each in told]
    assert sum(each["lease"]["id"] == troubled.uuid for each in payloads) == 3


def test_what_a_type_shows_replaces_no_other_key(operator: LeaseOperator) -> None:
    part = shown(operator, racks(operator))
    assert (part["racks"], part["status"], part["resource_type"]) == (1, "pending", "test:rack")


def test_an_active_reservation_keeps_the_shape_of_its_units(operator: LeaseOperator) -> None:
    lease = racks(operator, start_h=0)
    with pytest.raises(Conflict, match="The units of an active reservation cannot be changed"):
        change(operator, lease, size={"VCPU": 1})
    assert change(operator, lease, racks=3).reservations[0].units_max == 3
    assert len(operator.held(lease)) == 3


def test_slots_of_an_own_type_show_their_flavor(operator: LeaseOperator) -> None:
    lease = racks(operator, 2, size={"VCPU": 1, "MEMORY_MB": 64})
    part = shown(operator, lease)
    assert part["flavor_id"] == part["id"]
    assert part["aggregate_id"] is None
    operator.wait(3600)
    assert operator.status(lease) == "active"
    assert shown(operator, lease)["aggregate_id"] is not None


def test_leases_of_a_type_that_is_gone_go_on(operator: LeaseOperator) -> None:
    lease, second = racks(operator, 2), racks(operator, 1, 3, 4)
    operator.types = BUILT_IN
    assert shown(operator, lease)["racks"] == 2
    with pytest.raises(Invalid, match="The test:rack resource type is not supported"):
        racks(operator)
    with pytest.raises(Invalid, match="The test:rack resource type is not supported"):
        change(operator, lease, racks=1)
    longer = LeaseChange(name="renamed", end_at=lease.end_at + HOUR)
    assert change_to(operator, lease, longer).end_at == lease.end_at + HOUR
    operator.wait(3600)
    assert operator.status(lease) == "active"
    failed = min(operator.held(lease))
    operator.declare(failed, is_down=True)
    assert operator.heal() == 1
    assert failed not in operator.held(lease)
    operator.declare(failed, is_down=False)
    operator.wait(7200)
    assert operator.status(lease) == "ended"
    operator.delete(second)
    operator.turn()
    assert operator.held(second) == set()


def test_queries_become_parameters(operator: LeaseOperator) -> None:
    queried = operator.types.queried
    named = {"resource_type": "test:rack"}
    assert queried("test:rack", {"racks": "2", "x": "y"}, None) == {"racks": 2, "x": "y", **named}
    assert queried("test:rack", {"racks": "2" * 19}, 3) == {"racks": "2" * 19, "amount": 3, **named}
    with pytest.raises(Invalid, match="The test:shelf resource type is not supported"):
        queried("test:shelf", {}, None)


def test_an_own_type_may_read_queries_itself(operator: LeaseOperator) -> None:
    types = operator.cloud.read(lambda tx: types_of(tx, [f"{OWN}:QueriedType"]))
    assert types.queried("test:queried", {}, 3) == {"racks": 3, "resource_type": "test:queried"}
    for trouble in ("error", "nothing", "list", "long"):
        with pytest.raises(PluginFailed):
            types.queried("test:queried", {"trouble": trouble}, None)
    with pytest.raises(Conflict, match="painted"):
        types.queried("test:queried", {"trouble": "refusal"}, None)


def test_the_listed_types_are_those_of_the_service() -> None:
    assert tuple(TYPES) == RESOURCE_TYPES


def test_healing_keeps_the_requirements_of_an_own_type(tmp_path: Path) -> None:
    made = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1"))))
    for name, kind in (("a1", "a"), ("b1", "b")):
        add = partial(freepool.add, name=name, capabilities={"kind": kind}, aggregate="pool")
        made.cloud.write(partial(add, now=made.now))
    rack = made.cloud.read(lambda tx: types_of(tx, [f"{OWN}:PickyType"]))
    made.types = rack
    lease = racks(made, resource_type="test:picky")
    assert made.held(lease) == {"a1"}
    made.types = BUILT_IN
    made.declare("a1", is_down=True)
    made.heal()
    assert made.held(lease) == {"a1"}
    with pytest.raises(Conflict, match="Can't add extracapabilities"):
        made.cloud.write(
            lambda tx: freepool.change(
                tx, made.cloud.host("a1").id, HostChange({"kind": "b"}), made.now
            )
        )
    made.movers.close()
