"""Calls that wait at the same moment share a read, and each gets its own answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from innkeeper.domain.errors import NotFound
from innkeeper.engine import readers
from innkeeper.engine.readers import ReaderThreads
from innkeeper.store.transactions import Store, Tx
from tests.support.databases import open_store

WITHIN_S = 10.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty database."""
    opened = open_store(tmp_path)
    yield opened
    opened.dispose()


class Doubling:
    """A read that waits for the test, refuses 13, and fails if it reads 99."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []
        self.gate = threading.Event()

    def __call__(self, tx: Tx, items: Sequence[int]) -> list[int | NotFound]:
        """Double the items."""
        self.seen.append(list(items))
        self.gate.wait(WITHIN_S)
        if 99 in items:
            raise ZeroDivisionError
        return [NotFound("13") if each == 13 else 2 * each for each in items]


def run(store: Store, check: Callable[[ReaderThreads, Doubling], Awaitable[None]]) -> None:
    threads, work = ReaderThreads(store, 2), Doubling()
    try:
        asyncio.run(asyncio.wait_for(_whole(check, threads, work), WITHIN_S))
    finally:
        work.gate.set()
        threads.stop()


async def _whole(
    check: Callable[[ReaderThreads, Doubling], Awaitable[None]],
    threads: ReaderThreads,
    work: Doubling,
) -> None:
    await check(threads, work)


async def begun(work: Doubling, reads: int) -> None:
    """Wait until this many reads have begun."""
    while len(work.seen) < reads:
        await asyncio.sleep(0.001)


def test_calls_that_wait_share_the_next_read(store: Store) -> None:
    async def check(threads: ReaderThreads, work: Doubling) -> None:
        first = asyncio.create_task(threads.run_together(work, 1))
        await begun(work, 1)
        others = [asyncio.create_task(threads.run_together(work, each)) for each in (2, 13, 4)]
        await asyncio.sleep(0.01)
        work.gate.set()
        assert await first == 2
        answers = await asyncio.gather(*others, return_exceptions=True)
        assert answers[0] == 4
        assert isinstance(answers[1], NotFound)
        assert answers[2] == 8
        # A call never gets the answer of a read that began before the call.
        assert work.seen == [[1], [2, 13, 4]]

    run(store, check)


def test_an_error_reaches_all_calls_of_the_read_and_no_later_ones(store: Store) -> None:
    async def check(threads: ReaderThreads, work: Doubling) -> None:
        work.gate.set()
        calls = [threads.run_together(work, each) for each in (99, 1)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each) for each in answers] == [ZeroDivisionError, ZeroDivisionError]
        assert await threads.run_together(work, 3) == 6

    run(store, check)


def test_a_call_that_is_cancelled_harms_no_other(store: Store) -> None:
    async def check(threads: ReaderThreads, work: Doubling) -> None:
        calls = [asyncio.create_task(threads.run_together(work, each)) for each in (1, 2)]
        await begun(work, 1)
        calls[0].cancel()
        await asyncio.sleep(0)
        work.gate.set()
        assert await calls[1] == 4

    run(store, check)


def test_a_shared_read_is_bounded(store: Store) -> None:
    async def check(threads: ReaderThreads, work: Doubling) -> None:
        work.gate.set()
        count = 2 * readers.TOGETHER_MAX + 1
        calls = [threads.run_together(work, 1) for _ in range(count)]
        assert await asyncio.gather(*calls) == [2] * count
        assert max(map(len, work.seen)) <= readers.TOGETHER_MAX
        assert sum(map(len, work.seen)) == count

    run(store, check)
