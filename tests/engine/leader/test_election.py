"""The election: one leader at a time, replaced when it dies, and at once when it resigns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.errors import Doubtful
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.engine.commands import Command
from innkeeper.engine.leader.election import LOOKS_MAX, Election
from innkeeper.engine.writer import Writer
from innkeeper.store import leadership
from innkeeper.store.backends import catalogue
from innkeeper.store.leadership import Leader
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.boot.executor import BootExecutor
from tests.support.databases import MIGRATED

WITHIN_S = 10.0


@dataclass(slots=True)
class Member:
    """One process: its writer, its part in the election, and the leaders that it followed."""

    writer: Writer
    election: Election
    followed: list[str | None]

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.election.step()


Join = Callable[[str], Member]
Happening = Callable[[], None]


def nothing() -> None:
    """Nothing happens."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty database."""
    with MIGRATED["sqlite"](tmp_path) as url:
        backend = catalogue.of_url(url)
        made = Store(backend, backend.engines(url, readers_max=8, busy_timeout_s=5.0))
        yield made
        made.dispose()


@pytest.fixture
def join(store: Store) -> Iterator[Join]:
    """Let a process take part; all writers stop at the end."""
    with ExitStack() as stack:

        def add(name: str) -> Member:
            executor = BootExecutor(Scheduling(), Computing())
            with store.read() as tx:
                executor.load(tx)
            writer = Writer(store, executor)
            writer.start()
            stack.callback(writer.stop, WITHIN_S)
            followed: list[str | None] = []

            def changed(leader: Leader | None) -> None:
                followed.append(None if leader is None else leader.holder)

            return Member(
                writer, Election(store, writer, name, f"address of {name}", changed), followed
            )

        yield add


def row(store: Store) -> Leader:
    with store.read() as tx:
        found = leadership.current(tx)
    assert found is not None
    return found


def test_one_leads_and_the_others_follow(store: Store, join: Join) -> None:
    members = [join(name) for name in ("first", "second", "third")]
    for _ in range(3 * LOOKS_MAX):
        for each in members:
            each.step()
    assert [each.election.is_leading for each in members] == [True, False, False]
    assert [each.election.is_following for each in members] == [False, True, True]
    assert [each.followed for each in members] == [[], ["first"], ["first"]]
    assert row(store) == Leader(1, 3 * LOOKS_MAX - 1, "first", "address of first")


def test_a_leader_that_resigns_is_replaced_at_the_next_look(store: Store, join: Join) -> None:
    first, second = join("first"), join("second")
    first.step()
    second.step()
    first.election.resign()
    first.step(2 * LOOKS_MAX)
    assert not first.election.is_leading
    assert row(store).has_resigned
    second.step()
    assert second.election.is_leading
    assert second.followed == ["first", None]
    assert row(store).term == 2


def test_a_dead_leader_is_replaced_after_some_looks(store: Store, join: Join) -> None:
    first, second, third = join("first"), join("second"), join("third")
    for each in (first, second, third):
        each.step()
    second.step(LOOKS_MAX - 1)
    assert second.election.is_following
    second.step()
    assert second.election.is_leading
    # The new leader starts its own count.
    third.step(LOOKS_MAX)
    assert third.followed == ["first", "second"]
    # The old leader was only suspended.
    first.step()
    assert not first.election.is_leading
    assert first.followed == ["second"]
    assert row(store).holder == "second"


def test_of_two_that_take_over_one_leads(store: Store, join: Join) -> None:
    first, second, third = join("first"), join("second"), join("third")
    for each in (first, second, third):
        each.step()
    for _ in range(LOOKS_MAX):
        for each in (second, third):
            each.step()
    assert [each.election.is_leading for each in (second, third)] == [True, False]
    assert row(store) == Leader(2, 0, "second", "address of second")


def test_a_process_without_a_writer_loses_the_lead(store: Store, join: Join) -> None:
    first, second = join("first"), join("second")
    first.step()
    second.step()
    first.writer.stop(WITHIN_S)
    with capture_logs() as logs:
        for _ in range(LOOKS_MAX):
            first.step()
            second.step()
        assert second.election.is_leading
        first.step()
    # The process logs this once, and follows.
    assert [each["event"] for each in logs].count("leader_not_known") == 1
    assert not first.election.is_leading
    assert first.followed == ["second"]
    # The process cannot resign, either, but this has no effect.
    first.election.resign()
    assert row(store).holder == "second"


class Around:
    """A writer with something that happens before, and something after each command."""

    def __init__(
        self, writer: Writer, before: Happening = nothing, after: Happening = nothing
    ) -> None:
        self._writer = writer
        self._before = before
        self._after = after

    def submit_and_wait(self, command: Command[Any], timeout_s: float) -> Any:
        """See ``Writer``."""
        self._before()
        found = self._writer.submit_and_wait(command, timeout_s)
        self._after()
        return found


def with_writer(store: Store, member: Member, name: str, writer: Any) -> Member:
    """The process, with another writer."""

    def changed(leader: Leader | None) -> None:
        member.followed.append(None if leader is None else leader.holder)

    return replace(member, election=Election(store, writer, name, f"address of {name}", changed))


def test_a_process_that_comes_too_late_to_take_over_still_follows(store: Store, join: Join) -> None:
    first, second = join("first"), join("second")
    first.step()
    slow = with_writer(store, second, "second", Around(second.writer, before=first.step))
    slow.step(LOOKS_MAX + 1)
    assert not slow.election.is_leading
    assert slow.followed == ["first"]
    assert row(store).beat == 1


def test_a_process_that_nobody_can_reach_does_not_lead(store: Store, join: Join) -> None:
    deaf, second = join("deaf"), join("second")
    deaf.election = Election(store, deaf.writer, "deaf", None, lambda _: None)
    deaf.step(2 * LOOKS_MAX)
    assert not deaf.election.is_leading
    second.step()
    deaf.step()
    assert deaf.election.is_following
    second.election.resign()
    deaf.step(2 * LOOKS_MAX)
    assert not deaf.election.is_leading


def test_a_renewal_that_was_not_acknowledged_is_found(store: Store, join: Join) -> None:
    def lose() -> None:
        raise Doubtful("The database did not confirm the commit.")

    member = join("first")
    first = with_writer(store, member, "first", Around(member.writer, after=lose))
    with capture_logs():
        for beat in (0, 0, 1, 2):
            first.step()
            assert row(store).beat == beat
        assert first.election.is_leading


def test_a_takeover_that_was_not_acknowledged_is_found(store: Store, join: Join) -> None:
    def lose() -> None:
        raise Doubtful("The database did not confirm the commit.")

    first, member = join("first"), join("second")
    second = with_writer(store, member, "second", Around(member.writer, after=lose))
    first.step()
    with capture_logs():
        second.step(LOOKS_MAX + 2)
    assert row(store).holder == "second"
    assert (second.election.is_leading, second.election.is_following) == (True, False)
    assert second.followed == ["first", None]


def test_a_leader_of_a_lost_row_is_not_mistaken_for_another(store: Store, join: Join) -> None:
    first, second, third = join("first"), join("second"), join("third")
    first.step()
    third.step()
    with store.write() as tx:
        tx.exec_driver_sql("DELETE FROM leader")
    second.step()
    third.step()
    assert row(store).term == 1
    assert third.followed == ["first", "second"]
