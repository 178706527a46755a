"""The checker itself: it accepts possible histories, and finds each kind of violation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.many_writers.checker import World, check
from tests.simulation.many_writers.history import History, Kind, Operation, Outcome, Wish, read

DONE, REFUSED, UNKNOWN = Outcome.DONE, Outcome.REFUSED, Outcome.UNKNOWN
HOT, OTHER = "hot", "other"
ANN, BOB = "ann", "bob"
SERVER = {"VCPU": 1, "MEMORY_MB": 64}
WORLD = World({HOT: 10, OTHER: 10}, frozenset({HOT}), SERVER)


class Told:
    """A history made by hand; each operation starts and ends at a whole second."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._numbers = itertools.count(1)

    def add(
        self, kind: Kind, begun: float, ended: float, outcome: Outcome = DONE, **more: Any
    ) -> str:
        """Add an operation; gives its name."""
        name = more.pop("name", f"op-{next(self._numbers)}")
        self.operations.append(
            Operation(name, "client", "door", kind, begun, ended, outcome, **more)
        )
        return str(name)

    def claim(
        self, begun: float, ended: float, *wishes: Wish, outcome: Outcome = DONE, project: str = ""
    ) -> str:
        """A claim."""
        return self.add(Kind.CLAIM, begun, ended, outcome, wishes=wishes, project=project)

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
def told() -> Told:
    return Told()


def wish(seen: int | None, units: int, consumer: str = ANN, provider: str = HOT) -> Wish:
    return Wish(consumer, seen, {provider: units})


def demand(told: Told, *words: str) -> None:
    """Check that there is exactly one problem, with this text."""
    (problem,) = told.problems()
    for each in words:
        assert each in problem


def test_sequential_operations(told: Told) -> None:
    first = told.claim(1, 2, wish(None, 3))
    told.consumer(3, 4, ANN, first, 1, {HOT: 3})
    second = told.claim(5, 6, wish(1, 5))
    told.consumer(7, 8, ANN, second, 2, {HOT: 5})
    told.given(7, 8, 3, ann=(2, 5))
    told.release(9, 10, ANN)
    told.consumer(11, 12, ANN)
    told.given(11, 12, 3)
    told.usages(11, 12, 3, 0)
    assert told.problems() == []


def test_reads_beside_a_write_see_it_or_not(told: Told) -> None:
    first = told.claim(1, 10, wish(None, 3))
    told.consumer(2, 6, ANN)
    told.consumer(2, 6, ANN, first, 1, {HOT: 3})
    told.consumer(7, 9, ANN, first, 1, {HOT: 3})
    assert told.problems() == []


def test_an_acknowledged_claim_is_lost(told: Told) -> None:
    told.claim(1, 2, wish(None, 3))
    lost = told.consumer(3, 4, ANN)
    demand(told, "consumer ann", lost)


def test_a_claim_is_seen_again_after_its_acknowledged_release(told: Told) -> None:
    first = told.claim(1, 2, wish(None, 3))
    told.release(3, 4, ANN)
    told.consumer(5, 6, ANN, first, 1, {HOT: 3})
    demand(told, "consumer ann")


def test_a_release_is_undone_in_a_look_at_the_provider(told: Told) -> None:
    told.claim(1, 2, wish(None, 3))
    told.release(3, 4, ANN)
    late = told.given(5, 6, 2, ann=(1, 3))
    demand(told, "consumer ann", late)


def test_two_claims_upon_the_same_generation(told: Told) -> None:
    told.claim(1, 2, wish(None, 1))
    told.claim(3, 5, wish(1, 2))
    last = told.claim(4, 6, wish(1, 3))
    told.usages(7, 8, 4, 3)
    demand(told, "consumer ann", last)


def test_without_an_answer_it_happens_once_or_never(told: Told) -> None:
    told.claim(1, 2, wish(None, 3), outcome=UNKNOWN)
    told.consumer(3, 4, ANN)
    assert told.problems() == []
    # It takes effect late, and then stays.
    told.consumer(5, 6, ANN, "op-1", 1, {HOT: 3})
    told.consumer(7, 8, ANN, "op-1", 1, {HOT: 3})
    assert told.problems() == []
    gone = told.consumer(9, 10, ANN)
    demand(told, "consumer ann", gone)


def test_without_an_answer_it_happens_twice(told: Told) -> None:
    claim = told.claim(1, 2, wish(None, 3), outcome=UNKNOWN)
    told.consumer(3, 4, ANN, claim, 1, {HOT: 3})
    told.release(5, 6, ANN)
    again = told.consumer(7, 8, ANN, claim, 1, {HOT: 3})
    demand(told, "consumer ann", again)


def test_a_release_without_an_answer_may_come_late(told: Told) -> None:
    claim = told.claim(1, 2, wish(None, 3))
    told.release(3, 4, ANN, outcome=UNKNOWN)
    told.consumer(5, 6, ANN, claim, 1, {HOT: 3})
    told.consumer(7, 8, ANN)
    assert told.problems() == []


def test_a_refused_claim_is_there(told: Told) -> None:
    claim = told.claim(1, 2, wish(None, 3), outcome=REFUSED)
    told.consumer(3, 4, ANN, claim, 1, {HOT: 3})
    demand(told, claim, "refused or never asked for")


def test_half_of_a_claim_is_there(told: Told) -> None:
    claim = told.claim(1, 2, Wish(ANN, None, {HOT: 1, OTHER: 2}))
    told.consumer(3, 4, ANN, claim, 1, {OTHER: 2})
    demand(told, "consumer ann", "found {'other': 2}")


def test_an_answer_of_not_found_is_a_read(told: Told) -> None:
    told.claim(1, 2, wish(None, 3))
    gone = told.release(3, 4, ANN, outcome=REFUSED, status=404)
    demand(told, "consumer ann", gone)


def test_a_move_arrives_and_does_not_leave(told: Told) -> None:
    first = told.claim(1, 2, wish(None, 3))
    move = told.claim(3, 4, Wish(ANN, 1, {}), wish(None, 3, BOB), outcome=UNKNOWN)
    told.consumer(5, 6, BOB, move, 1, {HOT: 3})
    told.consumer(7, 8, ANN, first, 1, {HOT: 3})
    demand(told, "consumer ann")


def test_an_unacknowledged_move_is_atomic(told: Told) -> None:
    told.claim(1, 2, wish(None, 3))
    move = told.claim(3, 4, Wish(ANN, 1, {}), wish(None, 3, BOB), outcome=UNKNOWN)
    told.consumer(5, 6, BOB, move, 1, {HOT: 3})
    told.consumer(7, 8, ANN)
    assert told.problems() == []


def test_a_project_holds_all_of_its_units_at_every_moment(told: Told) -> None:
    def project(begun: float, used: int) -> str:
        found = {"used": used}
        return told.add(Kind.READ_PROJECT, begun, begun + 0.5, subject="pair", found=found)

    project(1, 0)
    told.claim(2, 3, wish(None, 1), wish(None, 3, BOB), project="pair")
    project(4, 4)
    told.claim(5, 6, wish(1, 2), wish(1, 2, BOB), project="pair")
    project(5, 4)
    assert told.problems() == []
    torn = project(7, 3)
    demand(told, "project pair", torn)
    told.operations.pop()
    lost = project(8, 0)
    demand(told, "project pair", lost)


def test_a_provider_is_over_capacity(told: Told) -> None:
    told.claim(1, 2, wish(None, 6))
    told.claim(3, 4, wish(None, 6, BOB))
    over = told.usages(5, 6, 3, 12)
    demand(told, "provider hot", over, "12 of 10")


def test_a_provider_overcommitted_by_a_resize_may_not_grow_its_use(told: Told) -> None:
    told.claim(1, 2, wish(None, 8))
    told.usages(3, 4, 2, 8)
    told.resize(5, 6, seen=2, total=5)
    told.usages(7, 8, 3, 8)
    told.claim(9, 10, wish(1, 7))
    told.usages(11, 12, 4, 7)
    assert told.problems() == []
    told.claim(13, 14, wish(2, 8))
    over = told.usages(15, 16, 5, 8)
    demand(told, "provider hot", over, "8 of 7")


def test_a_resize_without_an_answer_allows_either(told: Told) -> None:
    told.resize(1, 2, seen=1, total=20, outcome=UNKNOWN)
    told.claim(3, 4, wish(None, 15))
    told.usages(5, 6, 3, 15)
    told.inventory(5, 6, 3, 20)
    assert told.problems() == []
    nobodys = told.inventory(7, 8, 3, 30)
    assert any(nobodys in each and "nobody wrote" in each for each in told.problems())


def test_use_grows_within_a_generation(told: Told) -> None:
    told.usages(1, 2, 1, 3)
    told.usages(3, 4, 1, 2)
    assert told.problems() == []
    grown = told.usages(5, 6, 1, 3)
    demand(told, "provider hot", grown, "same generation")


def test_a_read_is_older_than_an_earlier_read(told: Told) -> None:
    told.claim(0, 9, wish(None, 3))
    told.usages(1, 2, 2, 3)
    told.usages(1.5, 4, 1, 0)
    assert told.problems() == []
    late = told.usages(3, 4, 1, 0)
    demand(told, "provider hot", late, "generation 1 after")


def test_a_read_misses_an_acknowledged_write(told: Told) -> None:
    told.claim(1, 2, wish(None, 3))
    told.usages(1.5, 2.5, 1, 0)
    assert told.problems() == []
    stale = told.usages(3, 4, 1, 0)
    assert all("provider hot" in each and stale in each for each in told.problems())
    assert told.problems()


def test_two_resizes_of_the_same_generation(told: Told) -> None:
    told.resize(1, 3, seen=1, total=5)
    told.resize(2, 4, seen=1, total=6)
    demand(told, "provider hot", "both moved generation 1")


def test_a_move_of_the_generation_is_lost_or_made_twice(told: Told) -> None:
    told.claim(1, 4, wish(None, 1))
    told.claim(2, 5, wish(None, 1, BOB))
    told.usages(6, 7, 3, 2)
    assert told.problems() == []
    told.operations.pop()
    few = told.usages(6, 7, 2, 2)
    demand(told, few, "after 2 writes")
    told.operations.pop()
    many = told.usages(6, 7, 4, 2)
    demand(told, many, "of 2 writes")


def boot(told: Told, outcome: Outcome = DONE) -> str:
    found = {"server": "uuid"} if outcome is DONE else {}
    return told.add(Kind.BOOT, 1, 2, outcome, found=found)


def servers(told: Told, **there: dict[str, Any]) -> None:
    told.add(Kind.READ_SERVERS, 9, 9, found={"servers": there})


def server(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "status": "ACTIVE", "held": {HOT: SERVER}, **more}


def test_each_server_exists_once_with_its_allocations(told: Told) -> None:
    name, maybe = boot(told), boot(told, UNKNOWN)
    servers(told, uuid=server(name), other=server(maybe))
    assert told.problems() == []
    servers(told, uuid=server(name, status="ERROR", held={}))
    assert told.problems() == []


def test_servers_that_cannot_be(told: Told) -> None:
    name, maybe = boot(told), boot(told, UNKNOWN)
    servers(told)
    demand(told, "is not there")
    servers(told, uuid=server(name), one=server(maybe), two=server(maybe))
    demand(told, f"2 servers {maybe}")
    servers(told, uuid=server(name, held={HOT: {"VCPU": 1}}))
    demand(told, "holds")
    refused = boot(told, REFUSED)
    servers(told, uuid=server(name), other=server(refused))
    demand(told, "refused or never")


def test_deleted_servers(told: Told) -> None:
    name = boot(told)
    told.add(Kind.DELETE, 3, 4, UNKNOWN, subject="uuid")
    servers(told)
    servers(told, uuid=server(name))
    assert told.problems() == []
    told.add(Kind.DELETE, 5, 6, subject="uuid")
    demand(told, "was deleted and is there")


def test_sums_at_the_end(told: Told) -> None:
    told.claim(1, 2, wish(None, 3))
    told.given(3, 4, 2, ann=(1, 3))
    told.usages(5, 6, 2, 2)
    demand(told, "2 units are used and 3 are held")


def test_an_accident(told: Told) -> None:
    told.claim(1, 2, wish(None, 3), outcome=UNKNOWN)
    told.add(Kind.RELEASE, 3, 4, UNKNOWN, subject=ANN, status=500)
    demand(told, "accident")


def test_a_history_is_the_same_from_its_file(told: Told, tmp_path: Path) -> None:
    told.claim(1, 2, wish(None, 3))
    told.given(3, 4, 2, ann=(1, 3))
    told.consumer(5, 6, ANN)
    history = History()
    history.note(0, "begins: something")
    for each in told.operations:
        history.add(each)
    history.write(tmp_path / "history", ["seed 1"])
    again = read(tmp_path / "history")
    assert [each.name for each in again] == ["op-1", "op-2", "op-3"]
    assert again[0] == told.operations[0]
    assert check(again, WORLD) == told.problems() != []
