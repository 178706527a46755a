"""Deferred commands share the commit of the next ordinary command, and run before it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.errors import Unavailable
from innkeeper.engine import writer
from innkeeper.engine.batches import PendingCommand
from innkeeper.engine.commands import Decide, Write, WriteTogether
from innkeeper.engine.writer import Writer
from innkeeper.store.transactions import Tx
from tests.support.clouds import Cloud
from tests.support.stores import NOW

WITHIN_S = 10.0


class Record:
    """What was executed, and how many transactions there were."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.transactions: set[int] = set()

    def together(self, tx: Tx, items: Sequence[int]) -> list[None]:
        """Work for several commands."""
        self.transactions.add(id(tx.get_transaction()))
        self.done.append(list(items))
        return [None] * len(items)

    def alone(self, tx: Tx) -> None:
        """Work of one command."""
        self.transactions.add(id(tx.get_transaction()))
        self.done.append("alone")


def test_deferred_commands_share_the_commit_of_the_next_one(cloud: Cloud) -> None:
    record, thread = Record(), Writer(cloud.store, cloud.executor)
    thread.start()

    async def all_of_them() -> None:
        for item in range(3):
            thread.defer(WriteTogether(record.together, item))
        await asyncio.wait_for(thread.submit(Write(record.alone)), WITHIN_S)

    asyncio.run(all_of_them())
    thread.stop(WITHIN_S)
    # A bound method is a new object each time, but an equal one.
    assert record.done == [[0, 1, 2], "alone"]
    assert len(record.transactions) == 1


def test_deferred_commands_do_not_make_a_plan_write(cloud: Cloud) -> None:
    record, thread = Record(), Writer(cloud.store, cloud.executor)
    thread.start()

    async def all_of_them() -> list[object]:
        thread.defer(WriteTogether(record.together, 1))
        plan = Decide(lambda tx, context: record.done.append("plan"), NOW, is_plan=True)
        await asyncio.wait_for(thread.submit(plan), WITHIN_S)
        done = list(record.done)
        decision = Decide(lambda tx, context: record.done.append("decision"), NOW)
        await asyncio.wait_for(thread.submit(decision), WITHIN_S)
        return done

    assert asyncio.run(all_of_them()) == ["plan"]
    thread.stop(WITHIN_S)
    assert record.done == ["plan", [1], "decision"]


def test_a_deferred_command_is_executed_alone_after_a_while(cloud: Cloud) -> None:
    record, thread = Record(), Writer(cloud.store, cloud.executor)
    thread.start()

    async def waits() -> float:
        begun_s = time.perf_counter()
        thread.defer(WriteTogether(record.together, 1))
        while not record.done and time.perf_counter() - begun_s < WITHIN_S:
            await asyncio.sleep(0.01)
        return time.perf_counter() - begun_s

    assert asyncio.run(waits()) >= writer.DEFERRED_S
    thread.stop(WITHIN_S)
    assert record.done == [[1]]


def test_a_caller_that_needs_a_deferred_command_hastens_it_and_gets_its_answer(
    cloud: Cloud,
) -> None:
    record, thread = Record(), Writer(cloud.store, cloud.executor)
    thread.start()

    def counts(tx: Tx, items: Sequence[int]) -> list[int]:
        return [each * 10 for each in items]

    async def waits() -> float:
        thread.hasten()
        answer = thread.submit_with_next(WriteTogether(counts, 1))
        thread.defer(WriteTogether(record.together, 2))
        begun_s = time.perf_counter()
        thread.hasten()
        assert await asyncio.wait_for(answer, WITHIN_S) == 10
        return time.perf_counter() - begun_s

    took_s = min(asyncio.run(waits()) for _ in range(5))
    thread.stop(WITHIN_S)
    assert record.done == [[2]] * 5
    assert took_s < writer.DEFERRED_S


def test_a_deferred_command_is_refused_once_the_thread_has_ended(cloud: Cloud) -> None:
    thread = Writer(cloud.store, cloud.executor)
    thread.start()
    thread.stop(WITHIN_S)

    async def defers() -> None:
        with pytest.raises(Unavailable):
            await asyncio.wait_for(
                thread.submit_with_next(WriteTogether(Record().together, 1)), WITHIN_S
            )

    asyncio.run(defers())


def test_the_wait_of_one_command_does_not_end_that_of_the_next(cloud: Cloud) -> None:
    record, thread = Record(), Writer(cloud.store, cloud.executor)
    thread.start()

    async def defers() -> list[object]:
        thread.defer(WriteTogether(record.together, 1))
        await asyncio.sleep(0.8 * writer.DEFERRED_S)
        await asyncio.wait_for(thread.submit(Write(record.alone)), WITHIN_S)
        thread.defer(WriteTogether(record.together, 2))
        # Now the waiting time of the first command is over.
        thread._end_wait(PendingCommand(Write(record.alone)))
        await asyncio.sleep(0.5 * writer.DEFERRED_S)
        return list(record.done)

    assert asyncio.run(defers())[:2] == [[1], "alone"]
    thread.stop(WITHIN_S)
    assert record.done == [[1], "alone", [2]]


def test_deferred_commands_are_executed_before_the_thread_stops(cloud: Cloud) -> None:
    record, thread = Record(), Writer(cloud.store, cloud.executor)
    thread.start()

    async def defers() -> None:
        thread.defer(WriteTogether(record.together, 1))

    asyncio.run(defers())
    thread.stop(WITHIN_S)
    assert record.done == [[1]]
    assert not thread.is_alive


def test_a_deferred_command_that_fails_fails_no_other(cloud: Cloud) -> None:
    record, thread = Record(), Writer(cloud.store, cloud.executor)
    thread.start()

    def breaks(tx: Tx, items: Sequence[int]) -> list[None]:
        raise ZeroDivisionError

    async def all_of_them() -> None:
        thread.defer(WriteTogether(breaks, 1))
        await asyncio.wait_for(thread.submit(Write(record.alone)), WITHIN_S)

    with capture_logs():
        asyncio.run(all_of_them())
        thread.stop(WITHIN_S)
    assert record.done == ["alone"]
