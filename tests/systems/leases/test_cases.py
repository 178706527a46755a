"""Cases that a service of reservations must get right, by a virtual clock.

The numbers are those of a list of other services' faults. The cases:

- 1: ``tests/compat``: the stock client; ``tests/scenarios/test_lease_acceptance.py``: the checks of
  the acceptance tests that come with Blazar.
- 2: here: peak use, not the use at the start.
- 3: here: windows that touch, and the time for cleaning, for new and for longer leases.
- 4: here: affinities, and packing.
- 5: here: a minimum to a maximum, and nothing left of a refused lease.
- 6: ``tests/integration/test_lease_races.py``; here: claims; sums:
  ``tests/properties/test_lease_minutes.py``; quotas: ``test_quota_races.py``.
- 7: ``test_cases_of_changes.py``: more and fewer slots of an active lease.
- 8: ``test_cases_of_changes.py``: changes by state, allowed and refused; with the codes of answers:
  ``tests/scenarios/test_lease_changes.py``.
- 9: here: a life cycle, windows that touch in one turn, a warning that comes again.
- 10: here: servers beyond the amount, before the start, after the end, of other projects.
- 11: here: the child provider and its inventory.
- 12: ``tests/integration/test_lease_kills.py``, ``test_lease_crashes.py``, ``test_event_races.py``.
- 13: ``test_healing.py``, ``tests/engine/leases/test_healing.py``; random failures:
  ``tests/properties/test_lease_minutes.py``; crashes: ``tests/integration/test_lease_kills.py``.
- 14: here: requirements; malformed ones: ``tests/scenarios/test_lease_bad_input.py``.
- 15: ``tests/scenarios/test_lease_bad_input.py``, ``tests/scenarios/leases/leases.yaml``.
- 16: ``tests/scenarios/leases/limits.yaml``, ``tests/integration/test_lease_checks.py``.
- 17: here: the words of a refusal.
- 18: ``tests/properties/test_calendar.py``.
- 19: here: deleting in each state.
- 20: ``test_statements.py``: the number of statements; ``benchmarks``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.errors import Conflict, Invalid, NotFound, Overtaken
from innkeeper.domain.leases import (
    ChosenHost,
    Lease,
    LeaseEventState,
    LeaseStatus,
    Window,
    slot_class,
)
from innkeeper.scheduling.leases.lacks import Lack
from innkeeper.scheduling.leases.requirements import HOST_FACTS
from innkeeper.store.tables import compute, placement
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import booking, freepool
from innkeeper.systems.leases.freepool import HostChange
from innkeeper.systems.leases.updates import LeaseChange
from tests.support.lease_cases import ELEVEN, NOON, TEN, make, no_room, refused, slots, units, whole
from tests.support.lease_worlds import SIZES, LeaseWorld, demand_of

# -- room over time ------------------------------------------------------------------------


def test_case_2_a_full_host_is_full_within_the_window(only_a1: LeaseWorld) -> None:
    make(only_a1, TEN, ELEVEN, slots(2, 4))
    no_room(only_a1, TEN + 30, TEN + 45, slots(1, 1))
    no_room(only_a1, 0, NOON, slots(1, 1))


def test_case_2_uses_one_after_the_other_are_not_added(only_a1: LeaseWorld) -> None:
    make(only_a1, TEN, ELEVEN, slots(2, 2))
    make(only_a1, ELEVEN, NOON, slots(2, 2))
    make(only_a1, TEN, NOON, slots(4, 1))
    no_room(only_a1, TEN, NOON, slots(1, 1))


def test_case_3_windows_may_touch(only_a1: LeaseWorld) -> None:
    make(only_a1, TEN, ELEVEN)
    make(only_a1, ELEVEN, NOON)
    make(only_a1, 0, TEN)
    no_room(only_a1, ELEVEN - 1, NOON)


def test_case_3_hosts_are_cleaned_between_leases(tmp_path: Path) -> None:
    world = LeaseWorld(tmp_path, cleaning_min=5)
    for name in SIZES.keys() - {"a1"}:
        world.switch(name)
    first = make(world, TEN, ELEVEN)
    no_room(world, ELEVEN, NOON)
    no_room(world, ELEVEN + 4, NOON)
    second = make(world, ELEVEN + 5, NOON)
    make(world, NOON + 10, NOON + 20)
    no_room(world, 0, TEN - 4)
    make(world, 0, TEN - 5)
    world.change(second.uuid, LeaseChange(end_at=world.at(NOON + 5)))
    longest = LeaseChange(end_at=world.at(NOON + 6))
    refused(world, lambda: world.change(second.uuid, longest), Conflict, "Not enough hosts")
    longer = LeaseChange(end_at=world.at(ELEVEN + 1))
    refused(world, lambda: world.change(first.uuid, longer), Conflict, "Not enough hosts")
    world.movers.close()


def test_case_4_affinities(world: LeaseWorld) -> None:
    no_room(world, TEN, ELEVEN, slots(2, 5, affinity=True))
    no_room(world, TEN, ELEVEN, slots(1, 5, affinity=False))
    together = make(world, TEN, ELEVEN, slots(2, 4, affinity=True))
    assert units(world, together) == {"a1": 4}
    apart = make(world, TEN, ELEVEN, slots(1, 3, affinity=False))
    assert units(world, apart) == {"a2": 1, "b1": 1, "b2": 1}
    anywhere = make(world, TEN, ELEVEN, slots(1, 7))
    assert units(world, anywhere) == {"a2": 3, "b1": 3, "b2": 1}


def test_case_4_hosts_in_use_come_first(world: LeaseWorld) -> None:
    first = make(world, TEN, ELEVEN, slots(1, 1))
    (home,) = units(world, first)
    assert set(units(world, make(world, TEN, ELEVEN, slots(1, 1)))) == {home}
    make(world, TEN, ELEVEN, whole(3))


def test_case_5_as_many_as_there_are(world: LeaseWorld) -> None:
    no_room(world, 0, ELEVEN, whole(5))
    no_room(world, 0, ELEVEN, slots(1, 1), whole(4))
    lease = make(world, 0, ELEVEN, whole(1, 9))
    assert len(units(world, lease)) == len(SIZES)


RIVALS = ((whole(), slots(1, 1)), (slots(1, 1), whole()), (slots(8, 1), slots(1, 1)))


@pytest.mark.parametrize(("mine", "theirs"), RIVALS, ids=("whole", "slot", "all_slots"))
def test_case_6_a_claim_sees_what_came_after_the_choice(
    only_a1: LeaseWorld, mine: dict[str, Any], theirs: dict[str, Any]
) -> None:
    claim = chosen_claim(only_a1, mine, TEN, ELEVEN)
    make(only_a1, TEN, ELEVEN, theirs)
    refused(only_a1, claim, Overtaken, "Another lease took a chosen host")


@pytest.mark.parametrize("start", [TEN - 4, ELEVEN + 4])
def test_case_6_a_claim_keeps_the_time_for_cleaning(tmp_path: Path, start: int) -> None:
    """The other lease ends a minute too late for this one, or begins a minute too early."""
    world = LeaseWorld(tmp_path, cleaning_min=5)
    for name in SIZES.keys() - {"a1"}:
        world.switch(name)
    claim = chosen_claim(world, whole(), TEN, ELEVEN)
    theirs = (0, start) if start < TEN else (start, NOON)
    make(world, *theirs)
    refused(world, claim, Overtaken, "Another lease took a chosen host")
    world.movers.close()


def chosen_claim(
    world: LeaseWorld, body: dict[str, Any], start: int, end: int
) -> Callable[[], object]:
    """Choose hosts for a lease, and return the act that claims them."""
    demands, context = [demand_of(body)], world.operator.context()
    window = Window(world.at(start), world.at(end))

    def choose(_: Tx, decision: DecisionContext) -> list[list[ChosenHost]]:
        table = decision.follower.table
        found = booking.look(table, demands, window, context)
        assert not isinstance(found, Lack)
        return booking.choices(table.calendar, found)

    chosen = world.cloud.decide(choose, world.operator.now)
    claim = partial(booking.claim, demands=demands, chosen=chosen, window=window, context=context)
    return lambda: world.cloud.write(claim)


# -- life cycles ---------------------------------------------------------------------------


def test_case_9_a_life(world: LeaseWorld) -> None:
    lease = make(world, TEN, ELEVEN)
    seen = []
    for _ in range(4):
        seen.append(world.lease(lease.uuid).status)
        world.operator.wait(1800)
    assert seen == [LeaseStatus.PENDING] * 2 + [LeaseStatus.ACTIVE] * 2
    assert world.lease(lease.uuid).status == LeaseStatus.ENDED


def test_case_9_the_former_lease_ends_first(only_a1: LeaseWorld) -> None:
    second, first = make(only_a1, TEN, ELEVEN), make(only_a1, 0, TEN)
    only_a1.operator.wait(3600)
    assert only_a1.lease(first.uuid).status == LeaseStatus.ENDED
    assert only_a1.lease(second.uuid).status == LeaseStatus.ACTIVE


def test_case_9_slots_wait_until_former_servers_are_gone(only_a1: LeaseWorld) -> None:
    first = make(only_a1, 0, TEN, slots(2, 4))
    second = make(only_a1, TEN, ELEVEN, slots(2, 4))
    old, new = (e.reservations[0] for e in (first, second))
    for part, home in ((old, "a1"), (new, None)):
        row = {"uuid": part.uuid, "unit_amounts": part.unit_amounts}
        assert only_a1.boot(row, "project") == home
    only_a1.movers.finish()
    only_a1.operator.wait(3600)
    statuses = [only_a1.lease(each.uuid).status for each in (first, second)]
    assert statuses == [LeaseStatus.ENDING, LeaseStatus.STARTING]
    assert not stock(only_a1, new.uuid)
    only_a1.come_to_rest()
    assert stock(only_a1, new.uuid) == [4]
    assert only_a1.lease(second.uuid).status == LeaseStatus.ACTIVE


def test_case_9_a_longer_lease_is_warned_of_once_more(world: LeaseWorld) -> None:
    operator = world.operator
    lease = operator.lease((1, 1), end=7200.0, warned=3600.0)
    operator.wait(3600)
    assert warning(world, lease) == (LeaseEventState.DONE, 60)
    world.change(lease.uuid, LeaseChange(end_at=world.at(240)))
    assert warning(world, lease) == (LeaseEventState.WAITING, 180)
    operator.wait(7200)
    assert warning(world, lease) == (LeaseEventState.DONE, 180)
    operator.wait(60)
    assert warning(world, lease) == (LeaseEventState.DONE, 180)


def test_case_9_a_shorter_lease_is_not_warned_of_before_its_start(world: LeaseWorld) -> None:
    lease = world.operator.lease((1, 1), start=3600.0, end=18000.0, warned=7200.0)
    world.change(lease.uuid, LeaseChange(end_at=world.at(ELEVEN)))
    assert warning(world, lease) == (LeaseEventState.WAITING, TEN)


def warning(world: LeaseWorld, lease: Lease) -> tuple[str, int]:
    """Return the state of a lease's warning, and the minute in which it is due."""
    found = world.lease(lease.uuid).warning
    assert found is not None
    return found.state, world.minute_of(found.due_at)


def test_cases_10_and_11_slots_are_used_in_the_window_only(world: LeaseWorld) -> None:
    lease = make(world, TEN, ELEVEN, slots(1, 2, affinity=False))
    part: dict[str, Any] = {
        "uuid": lease.reservations[0].uuid,
        "unit_amounts": lease.reservations[0].unit_amounts,
    }
    assert world.boot(part, "project") is None
    assert stock(world, part["uuid"]) is None
    seen = [children(world)]
    world.operator.wait(3600)
    assert stock(world, part["uuid"]) == [1, 1]
    seen.append(children(world))
    assert world.boot(part, "stranger") is None
    homes = {world.boot(part, "project") for _ in range(2)}
    assert homes == set(units(world, lease))
    assert world.boot(part, "project") is None
    plain = world.movers.boot("a9")
    on_reserved = world.cloud.request(now=world.operator.now, forced_host="b2")
    (booted,) = world.cloud.boot(on_reserved)
    assert "No valid host" in str(getattr(booted, "fault", "")), "an ordinary server"
    world.movers.finish()
    world.operator.wait(3600)
    assert world.boot(part, "project") is None
    world.come_to_rest()
    assert stock(world, part["uuid"]) is None
    seen.append(children(world))
    for name in homes:
        # The provider is made with the first slots on the host.
        before, during, after = (each.get(f"blazar_{name}", -1) for each in seen)
        assert before < during < after, "the generation increases at the start and at the end"
    left = [each for each in world.rows(compute.servers) if each["deleted_at"] is None]
    assert [each["uuid"] for each in left if each["host"] is not None] == [plain]


def children(world: LeaseWorld) -> dict[str, int]:
    """Return the generations of the providers of slots, by name."""
    rows = world.rows(placement.resource_providers)
    return {e["name"]: e["generation"] for e in rows if e["name"].startswith("blazar_")}


def stock(world: LeaseWorld, reservation: str) -> list[int] | None:
    """Return the totals of a reservation's class, or ``None`` if there is no such class."""
    name = slot_class(reservation)
    classes = [e["id"] for e in world.rows(placement.resource_classes) if e["name"] == name]
    if not classes:
        return None
    rows = [e for e in world.rows(placement.inventories) if e["resource_class_id"] in classes]
    assert {(each["min_unit"], each["max_unit"], each["step_size"]) for each in rows} <= {(1, 1, 1)}
    return [each["total"] for each in rows]


REQUIREMENTS = {
    '["and", ["and", [">", "$vcpus", "2"], ["<", "$vcpus", "8"]], ["==", "$kind", "b"]]': {"a2"},
    '["or", ["==", "$vcpus", "8"], ["==", "$vcpus", 2]]': {"a1", "b2"},
    '[">=", "$memory_mb", "8192"]': {"a1", "b1"},
    '["!=", "$kind", "a"]': {"a2", "b2"},
    '["<", "$vcpus", "10"]': set(SIZES),
    '["in", "$vcpus", "2", 8]': {"a1", "b2"},
    '["not", ["or", ["==", "$kind", "a"], ["<=", "$vcpus", 2]]]': {"a2"},
    '["and", ["or", ["=", "$kind", "a"], ["=", "$kind", "b"]], ["in", "$vcpus", 4]]': {"a2", "b1"},
    '[">=", "$rank", "9"]': {"a1", "b1"},
    '["==", "$rank", 10.0]': {"a1"},
    '[">", "$firmware", "1.9.0"]': {"a1", "b1"},
    '["<", "$firmware", "1.10.2"]': {"a2", "b1"},
    '["!=", "$firmware", "1.9.3"]': {"a1", "a2"},
}
CAPABILITIES: dict[str, dict[str, Any]] = {
    "a1": {"rank": "10", "firmware": "1.10.2"},
    "b1": {"rank": 9, "firmware": "1.9.3"},
    "a2": {"rank": "8.5", "firmware": "1.2.0"},
}
"""Capabilities that only texts or numbers of the same meaning match. b2 has none of them."""


@pytest.mark.parametrize(("text", "hosts"), REQUIREMENTS.items())
def test_case_14_requirements(world: LeaseWorld, text: str, hosts: set[str]) -> None:
    for name, capabilities in CAPABILITIES.items():
        wanted = HostChange(capabilities)
        world.cloud.write(
            partial(freepool.change, host_id=world.host_ids[name], wanted=wanted, now=world.at(0))
        )
    assert set(units(world, make(world, TEN, ELEVEN, whole(1, 9, text)))) == hosts


def test_case_14_facts_of_all_hosts_may_be_named(world: LeaseWorld) -> None:
    for fact in sorted(HOST_FACTS):
        none = whole(1, 4, f'["==", "${fact}", "no host has this"]')
        no_room(world, TEN, ELEVEN, none)
    unknown = whole(1, 4, '["==", "$hypervisor", "x"]')
    refused(world, lambda: make(world, TEN, ELEVEN, unknown), Invalid, "no host has a property")


def test_case_17_a_refusal_says_how_many_fit_and_why(world: LeaseWorld) -> None:
    make(world, TEN, ELEVEN, whole(1, 1, '["==", "$vcpus", "8"]'))
    world.switch("b2")
    with pytest.raises(Conflict) as caught:
        make(world, TEN, ELEVEN, whole(3))
    text = str(caught.value)
    assert text.startswith("Not enough hosts available: 2 of 3 units of reservation 1 fit")
    assert "1 hosts are down" in text
    assert "1 are reserved as a whole in this time" in text


def test_case_19_leases_are_deleted_in_each_state(only_a1: LeaseWorld) -> None:
    world = only_a1
    pending, active = make(world, TEN, ELEVEN), make(world, 0, TEN, slots(1, 1))
    starting = make(world, ELEVEN, NOON)
    world.delete(pending.uuid)
    with pytest.raises(NotFound):
        world.delete(pending.uuid)
    part = active.reservations[0]
    assert world.boot({"uuid": part.uuid, "unit_amounts": part.unit_amounts}, "project") == "a1"
    world.movers.finish()
    world.operator.wait(60.0 * ELEVEN)
    assert world.lease(starting.uuid).status == LeaseStatus.STARTING
    world.delete(starting.uuid)
    world.delete(active.uuid)
    world.come_to_rest()
    assert world.present() == []
    make(world, ELEVEN, NOON)
