"""The checker itself: it accepts possible histories, and finds each kind of violation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.many_writers.checker import World, check
from tests.simulation.many_writers.history import (
    ConsumerUpdate,
    History,
    Kind,
    Operation,
    Outcome,
    read,
)

DONE, REFUSED, UNKNOWN = Outcome.DONE, Outcome.REFUSED, Outcome.UNKNOWN
HOT, OTHER = "hot", "other"
ANN, BOB = "ann", "bob"
SERVER = {"VCPU": 1, "MEMORY_MB": 64}
WORLD = World({HOT: 10, OTHER: 10}, frozenset({HOT}), SERVER)


class MadeHistory:
    """A history made by hand; each operation starts and ends at a whole second."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._numbers = itertools.count(1)

    def add(
        self, kind: Kind, begun: float, ended: float, outcome: Outcome = DONE, **more: Any
    ) -> str:
        """Add an operation; returns its name."""
        name = more.pop("name", f"op-{next(self._numbers)}")
        self.operations.append(
            Operation(name, "client", "door", kind, begun, ended, outcome, **more)
        )
        return str(name)

    def claim(
        self,
        begun: float,
        ended: float,
        *updates: ConsumerUpdate,
        outcome: Outcome = DONE,
        project: str = "",
    ) -> str:
        """A claim."""
        return self.add(Kind.CLAIM, begun, ended, outcome, updates=updates, project=project)

    def release(self, begun: float, ended: float, consumer: str, **more: Any) -> str:
        """A release."""
        return self.add(Kind.RELEASE, begun, ended, subject=consumer, **more)

    def resize(self, begun: float, ended: float, seen: int, total: int, **more: Any) -> str:
        """A resize of the hot provider."""
        return self.add(Kind.RESIZE, begun, ended, subject=HOT, seen=seen, total=total, **more)

    def consumer(
        self,
        begun: float,
        ended: float,
        uuid: str,
        writer: str = "",
        generation: int | None = None,
        amounts: dict[str, int] | None = None,
    ) -> str:
        """A read of a consumer; by default it does not exist."""
        found = {"writer": writer, "generation": generation, "amounts": amounts or {}}
        return self.add(Kind.READ_CONSUMER, begun, ended, subject=uuid, found=found)

    def usages(self, begun: float, ended: float, generation: int, used: int) -> str:
        """A read of the hot provider's usages."""
        found = {"generation": generation, "used": used}
        return self.add(Kind.READ_USAGES, begun, ended, subject=HOT, found=found)

    def given(self, begun: float, ended: float, generation: int, **held: tuple[int, int]) -> str:
        """A read of the hot provider's allocations."""
        used = sum(units for _, units in held.values())
        found = {"generation": generation, "held": held, "used": used}
        return self.add(Kind.READ_GIVEN, begun, ended, subject=HOT, found=found)

    def inventory(self, begun: float, ended: float, generation: int, total: int) -> str:
        """A read of the hot provider's inventory."""
        found = {"generation": generation, "total": total}
        return self.add(Kind.READ_INVENTORY, begun, ended, subject=HOT, found=found)

    def problems(self) -> Sequence[str]:
        """The checker's findings."""
        return check(sorted(self.operations, key=lambda each: each.begun_s), WORLD)


@pytest.fixture
def made() -> MadeHistory:
    return MadeHistory()


def update_of(
    seen: int | None, units: int, consumer: str = ANN, provider: str = HOT
) -> ConsumerUpdate:
    return ConsumerUpdate(consumer, seen, {provider: units})


def demand(made: MadeHistory, *words: str) -> None:
    """Check that there is exactly one problem, with this text."""
    (problem,) = made.problems()
    for each in words:
        assert each in problem


def test_sequential_operations(made: MadeHistory) -> None:
    first = made.claim(1, 2, update_of(None, 3))
    made.consumer(3, 4, ANN, first, 1, {HOT: 3})
    second = made.claim(5, 6, update_of(1, 5))
    made.consumer(7, 8, ANN, second, 2, {HOT: 5})
    made.given(7, 8, 3, ann=(2, 5))
    made.release(9, 10, ANN)
    made.consumer(11, 12, ANN)
    made.given(11, 12, 3)
    made.usages(11, 12, 3, 0)
    assert made.problems() == []


def test_reads_beside_a_write_see_it_or_not(made: MadeHistory) -> None:
    first = made.claim(1, 10, update_of(None, 3))
    made.consumer(2, 6, ANN)
    made.consumer(2, 6, ANN, first, 1, {HOT: 3})
    made.consumer(7, 9, ANN, first, 1, {HOT: 3})
    assert made.problems() == []


def test_an_acknowledged_claim_is_lost(made: MadeHistory) -> None:
    made.claim(1, 2, update_of(None, 3))
    lost = made.consumer(3, 4, ANN)
    demand(made, "consumer ann", lost)


def test_a_claim_is_seen_again_after_its_acknowledged_release(made: MadeHistory) -> None:
    first = made.claim(1, 2, update_of(None, 3))
    made.release(3, 4, ANN)
    made.consumer(5, 6, ANN, first, 1, {HOT: 3})
    demand(made, "consumer ann")


def test_a_release_is_undone_in_a_look_at_the_provider(made: MadeHistory) -> None:
    made.claim(1, 2, update_of(None, 3))
    made.release(3, 4, ANN)
    late = made.given(5, 6, 2, ann=(1, 3))
    demand(made, "consumer ann", late)


def test_two_claims_upon_the_same_generation(made: MadeHistory) -> None:
    made.claim(1, 2, update_of(None, 1))
    made.claim(3, 5, update_of(1, 2))
    last = made.claim(4, 6, update_of(1, 3))
    made.usages(7, 8, 4, 3)
    demand(made, "consumer ann", last)


def test_without_an_answer_it_happens_once_or_never(made: MadeHistory) -> None:
    made.claim(1, 2, update_of(None, 3), outcome=UNKNOWN)
    made.consumer(3, 4, ANN)
    assert made.problems() == []
    # The write takes effect late, and its effect then stays.
    made.consumer(5, 6, ANN, "op-1", 1, {HOT: 3})
    made.consumer(7, 8, ANN, "op-1", 1, {HOT: 3})
    assert made.problems() == []
    gone = made.consumer(9, 10, ANN)
    demand(made, "consumer ann", gone)


def test_without_an_answer_it_happens_twice(made: MadeHistory) -> None:
    claim = made.claim(1, 2, update_of(None, 3), outcome=UNKNOWN)
    made.consumer(3, 4, ANN, claim, 1, {HOT: 3})
    made.release(5, 6, ANN)
    again = made.consumer(7, 8, ANN, claim, 1, {HOT: 3})
    demand(made, "consumer ann", again)


def test_a_release_without_an_answer_may_come_late(made: MadeHistory) -> None:
    claim = made.claim(1, 2, update_of(None, 3))
    made.release(3, 4, ANN, outcome=UNKNOWN)
    made.consumer(5, 6, ANN, claim, 1, {HOT: 3})
    made.consumer(7, 8, ANN)
    assert made.problems() == []


def test_a_refused_claim_is_there(made: MadeHistory) -> None:
    claim = made.claim(1, 2, update_of(None, 3), outcome=REFUSED)
    made.consumer(3, 4, ANN, claim, 1, {HOT: 3})
    demand(made, claim, "refused or never asked for")


def test_half_of_a_claim_is_there(made: MadeHistory) -> None:
    claim = made.claim(1, 2, ConsumerUpdate(ANN, None, {HOT: 1, OTHER: 2}))
    made.consumer(3, 4, ANN, claim, 1, {OTHER: 2})
    demand(made, "consumer ann", "found {'other': 2}")


def test_an_answer_of_not_found_is_a_read(made: MadeHistory) -> None:
    made.claim(1, 2, update_of(None, 3))
    gone = made.release(3, 4, ANN, outcome=REFUSED, status=404)
    demand(made, "consumer ann", gone)


def test_a_move_arrives_and_does_not_leave(made: MadeHistory) -> None:
    first = made.claim(1, 2, update_of(None, 3))
    move = made.claim(3, 4, ConsumerUpdate(ANN, 1, {}), update_of(None, 3, BOB), outcome=UNKNOWN)
    made.consumer(5, 6, BOB, move, 1, {HOT: 3})
    made.consumer(7, 8, ANN, first, 1, {HOT: 3})
    demand(made, "consumer ann")


def test_an_unacknowledged_move_is_atomic(made: MadeHistory) -> None:
    made.claim(1, 2, update_of(None, 3))
    move = made.claim(3, 4, ConsumerUpdate(ANN, 1, {}), update_of(None, 3, BOB), outcome=UNKNOWN)
    made.consumer(5, 6, BOB, move, 1, {HOT: 3})
    made.consumer(7, 8, ANN)
    assert made.problems() == []


def test_a_project_holds_all_of_its_units_at_every_moment(made: MadeHistory) -> None:
    def project(begun: float, used: int) -> str:
        found = {"used": used}
        return made.add(Kind.READ_PROJECT, begun, begun + 0.5, subject="pair", found=found)

    project(1, 0)
    made.claim(2, 3, update_of(None, 1), update_of(None, 3, BOB), project="pair")
    project(4, 4)
    made.claim(5, 6, update_of(1, 2), update_of(1, 2, BOB), project="pair")
    project(5, 4)
    assert made.problems() == []
    torn = project(7, 3)
    demand(made, "project pair", torn)
    made.operations.pop()
    lost = project(8, 0)
    demand(made, "project pair", lost)


def test_a_provider_is_over_capacity(made: MadeHistory) -> None:
    made.claim(1, 2, update_of(None, 6))
    made.claim(3, 4, update_of(None, 6, BOB))
    over = made.usages(5, 6, 3, 12)
    demand(made, "provider hot", over, "12 of 10")


def test_a_provider_overcommitted_by_a_resize_may_not_grow_its_use(made: MadeHistory) -> None:
    made.claim(1, 2, update_of(None, 8))
    made.usages(3, 4, 2, 8)
    made.resize(5, 6, seen=2, total=5)
    made.usages(7, 8, 3, 8)
    made.claim(9, 10, update_of(1, 7))
    made.usages(11, 12, 4, 7)
    assert made.problems() == []
    made.claim(13, 14, update_of(2, 8))
    over = made.usages(15, 16, 5, 8)
    demand(made, "provider hot", over, "8 of 7")


def test_a_resize_without_an_answer_allows_either(made: MadeHistory) -> None:
    made.resize(1, 2, seen=1, total=20, outcome=UNKNOWN)
    made.claim(3, 4, update_of(None, 15))
    made.usages(5, 6, 3, 15)
    made.inventory(5, 6, 3, 20)
    assert made.problems() == []
    unknown = made.inventory(7, 8, 3, 30)
    assert any(unknown in each and "nobody wrote" in each for each in made.problems())


def test_use_grows_within_a_generation(made: MadeHistory) -> None:
    made.usages(1, 2, 1, 3)
    made.usages(3, 4, 1, 2)
    assert made.problems() == []
    grown = made.usages(5, 6, 1, 3)
    demand(made, "provider hot", grown, "same generation")


def test_a_read_is_older_than_an_earlier_read(made: MadeHistory) -> None:
    made.claim(0, 9, update_of(None, 3))
    made.usages(1, 2, 2, 3)
    made.usages(1.5, 4, 1, 0)
    assert made.problems() == []
    late = made.usages(3, 4, 1, 0)
    demand(made, "provider hot", late, "generation 1 after")


def test_a_read_misses_an_acknowledged_write(made: MadeHistory) -> None:
    made.claim(1, 2, update_of(None, 3))
    made.usages(1.5, 2.5, 1, 0)
    assert made.problems() == []
    stale = made.usages(3, 4, 1, 0)
    assert all("provider hot" in each and stale in each for each in made.problems())
    assert made.problems()


def test_two_resizes_of_the_same_generation(made: MadeHistory) -> None:
    made.resize(1, 3, seen=1, total=5)
    made.resize(2, 4, seen=1, total=6)
    demand(made, "provider hot", "both moved generation 1")


def test_a_move_of_the_generation_is_lost_or_made_twice(made: MadeHistory) -> None:
    made.claim(1, 4, update_of(None, 1))
    made.claim(2, 5, update_of(None, 1, BOB))
    made.usages(6, 7, 3, 2)
    assert made.problems() == []
    made.operations.pop()
    few = made.usages(6, 7, 2, 2)
    demand(made, few, "after 2 writes")
    made.operations.pop()
    many = made.usages(6, 7, 4, 2)
    demand(made, many, "of 2 writes")


def boot(made: MadeHistory, outcome: Outcome = DONE) -> str:
    found = {"server": "uuid"} if outcome is DONE else {}
    return made.add(Kind.BOOT, 1, 2, outcome, found=found)


def servers(made: MadeHistory, **there: dict[str, Any]) -> None:
    made.add(Kind.READ_SERVERS, 9, 9, found={"servers": there})


def server(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "status": "ACTIVE", "held": {HOT: SERVER}, **more}


def test_each_server_exists_once_with_its_allocations(made: MadeHistory) -> None:
    name, maybe = boot(made), boot(made, UNKNOWN)
    servers(made, uuid=server(name), other=server(maybe))
    assert made.problems() == []
    servers(made, uuid=server(name, status="ERROR", held={}))
    assert made.problems() == []


def test_impossible_servers(made: MadeHistory) -> None:
    name, maybe = boot(made), boot(made, UNKNOWN)
    servers(made)
    demand(made, "is not there")
    servers(made, uuid=server(name), one=server(maybe), two=server(maybe))
    demand(made, f"2 servers {maybe}")
    servers(made, uuid=server(name, held={HOT: {"VCPU": 1}}))
    demand(made, "holds")
    refused = boot(made, REFUSED)
    servers(made, uuid=server(name), other=server(refused))
    demand(made, "refused or never")


def test_deleted_servers(made: MadeHistory) -> None:
    name = boot(made)
    made.add(Kind.DELETE, 3, 4, UNKNOWN, subject="uuid")
    servers(made)
    servers(made, uuid=server(name))
    assert made.problems() == []
    made.add(Kind.DELETE, 5, 6, subject="uuid")
    demand(made, "was deleted and is there")


def test_sums_at_the_end(made: MadeHistory) -> None:
    made.claim(1, 2, update_of(None, 3))
    made.given(3, 4, 2, ann=(1, 3))
    made.usages(5, 6, 2, 2)
    demand(made, "2 units are used and 3 are held")


def test_an_internal_error(made: MadeHistory) -> None:
    made.claim(1, 2, update_of(None, 3), outcome=UNKNOWN)
    made.add(Kind.RELEASE, 3, 4, UNKNOWN, subject=ANN, status=500)
    demand(made, "accident")


def test_a_history_is_the_same_from_its_file(made: MadeHistory, tmp_path: Path) -> None:
    made.claim(1, 2, update_of(None, 3))
    made.given(3, 4, 2, ann=(1, 3))
    made.consumer(5, 6, ANN)
    history = History()
    history.note(0, "begins: something")
    for each in made.operations:
        history.add(each)
    history.write(tmp_path / "history", ["seed 1"])
    again = read(tmp_path / "history")
    assert [each.name for each in again] == ["op-1", "op-2", "op-3"]
    assert again[0] == made.operations[0]
    assert check(again, WORLD) == made.problems() != []
