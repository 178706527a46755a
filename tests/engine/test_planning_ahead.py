"""Boots that wait are planned during a flush; they are answered later, or dropped if it fails."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Busy, Doubtful, Unreachable
from innkeeper.domain.slices import Scheduling
from innkeeper.engine import metrics
from innkeeper.engine.batches import PendingCommand
from innkeeper.engine.command_queue import CommandQueue
from innkeeper.engine.commands import Boot, Write
from innkeeper.engine.planning_ahead import FLUSH_MIN_S, PlannerThread
from innkeeper.engine.writer import Writer
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.executor import BootExecutor
from tests.support.clouds import UNLIMITED, Cloud, begun_cloud, faults
from tests.support.flushes import Flushes

WITHIN_S = 10.0
PAUSE_S = 0.005


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    """The log events of a test."""
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of three hosts with room for four small servers each, which has booted one."""
    with begun_cloud(tmp_path) as started:
        yield started


class HeldFlush:
    """A writer whose second batch is held twice: before its last step, and during its flush.

    The flush of the first batch takes ``before_s``. Commands that are submitted before the first
    gate opens wait for the next batch.
    """

    def __init__(
        self, cloud: Cloud, error: Exception | None = None, before_s: float = 2 * FLUSH_MIN_S
    ) -> None:
        self.cloud = cloud
        self._before_s = before_s
        self._errors = [error]
        self._is_writing, self._is_flushing = threading.Event(), threading.Event()
        self._flushes, self._ends = threading.Event(), threading.Event()
        self.writer = Writer(Flushes(cloud.store, self._flush), cloud.executor)
        self.writer.start()

    def _write(self, tx: Tx) -> str:
        self._is_writing.set()
        assert self._flushes.wait(WITHIN_S)
        return "written"

    def _flush(self) -> None:
        if not self._is_writing.is_set():
            time.sleep(self._before_s)
            return
        if not self._errors:
            return
        error = self._errors.pop()
        self._is_flushing.set()
        assert self._ends.wait(WITHIN_S)
        if error is not None:
            raise error

    async def begin(self, *boots: BootRequest) -> list[asyncio.Future[Any]]:
        """Hold a flush during which these boots wait. Returns all futures, the write's first."""
        await self.writer.submit(Write(lambda _: None))
        first = asyncio.ensure_future(self.writer.submit(Write(self._write)))
        await until(self._is_writing.is_set)
        waiting = [asyncio.ensure_future(self.writer.submit(Boot(each))) for each in boots]
        await until(lambda: self.writer.waiting.get("boot", 0) == len(boots))
        self._flushes.set()
        await until(self._is_flushing.is_set)
        return [first, *waiting]

    def end(self) -> None:
        """Let the flush end."""
        self._ends.set()

    def taken(self) -> int:
        """Return how many servers the host table shows."""
        return int(self.cloud.table.used["VCPU"].sum())


async def until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s
        await asyncio.sleep(PAUSE_S)


async def answers(futures: list[asyncio.Future[Any]]) -> list[Any]:
    return await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), WITHIN_S)


def run(held: HeldFlush, story: Any) -> list[Any]:
    try:
        return asyncio.run(story(held))
    finally:
        held.end()
        held.writer.stop(WITHIN_S)


def counted(outcome: str) -> float:
    (family,) = metrics.AHEAD.collect()
    return sum(
        each.value
        for each in family.samples
        if each.name.endswith("_total") and each.labels == {"outcome": outcome}
    )


def test_boots_are_planned_during_a_flush_and_answered_after_their_own(cloud: Cloud) -> None:
    requests = [cloud.request(2), cloud.request(), cloud.request()]
    ids = [uuid for each in requests for uuid in each.server_ids]
    used = counted("used")

    async def story(held: HeldFlush) -> list[Any]:
        futures = await held.begin(*requests)
        await until(lambda: held.taken() == 1 + 4)
        await asyncio.sleep(PAUSE_S)
        assert not any(each.done() for each in futures)
        assert cloud.read(lambda tx: servers.alive(tx, ids)) == []
        held.end()
        return await answers(futures)

    first, *booted = run(HeldFlush(cloud), story)
    assert first == "written"
    assert faults(booted) == [None] * 3
    assert cloud.executor.plans_ahead() == (3, 0)
    assert counted("used") == used + 3


@pytest.mark.parametrize(
    "error", [Busy("slow"), Unreachable("lost"), Doubtful("unknown"), ZeroDivisionError()]
)
def test_a_failed_flush_undoes_what_was_planned_behind_it(cloud: Cloud, error: Exception) -> None:
    requests = [cloud.request(4), cloud.request(4)]
    undone = counted("undone")

    async def story(held: HeldFlush) -> list[Any]:
        futures = await held.begin(*requests)
        await until(lambda: held.taken() == 1 + 8)
        held.end()
        return await answers(futures)

    first, *booted = run(HeldFlush(cloud, error), story)
    assert first == ("written" if isinstance(error, Unreachable) else error)
    assert faults(booted) == [None, None]
    assert cloud.table.used["VCPU"].sum() == 9
    assert counted("undone") == undone + 2


def test_the_plan_of_a_client_that_leaves_is_undone(cloud: Cloud) -> None:
    left, last = cloud.request(8), cloud.request(8)

    async def story(held: HeldFlush) -> list[Any]:
        first, leaving, staying = await held.begin(left, last)
        await until(lambda: held.taken() == 1 + 8)
        leaving.cancel()
        await asyncio.sleep(PAUSE_S)
        held.end()
        return await answers([first, leaving, staying])

    _, _, booted = run(HeldFlush(cloud), story)
    assert isinstance(booted, Booted)
    assert booted.fault is None, "there is room for one of them only"
    assert cloud.read(lambda tx: servers.alive(tx, left.server_ids)) == []


def test_without_waiting_boots_nothing_is_handed_over(cloud: Cloud) -> None:
    async def story(held: HeldFlush) -> list[Any]:
        futures = await held.begin()
        names = [each.name for each in threading.enumerate()]
        held.end()
        await answers(futures)
        return names

    assert not any("planner" in each for each in run(HeldFlush(cloud), story))


def test_if_decisions_are_recorded_nothing_is_handed_over(cloud: Cloud) -> None:
    """No plan can be made ahead, because a recording cannot be undone."""
    scheduling = Scheduling(record_decisions="failed")
    cloud.executor = BootExecutor(scheduling, UNLIMITED, keep=lambda _: None)
    cloud.reread()

    async def story(held: HeldFlush) -> list[Any]:
        futures = await held.begin(cloud.request())
        names = [each.name for each in threading.enumerate()]
        held.end()
        await answers(futures)
        return names

    assert not any("planner" in each for each in run(HeldFlush(cloud), story))


@pytest.mark.parametrize(("flush_s", "planned"), [(FLUSH_MIN_S / 2, 0), (FLUSH_MIN_S, 1)])
def test_only_after_a_slow_flush_something_is_handed_over(
    cloud: Cloud, flush_s: float, planned: int
) -> None:
    queue = CommandQueue()
    queue.put(PendingCommand(Boot(cloud.request())))
    moments = itertools.count()
    planner = PlannerThread(queue, cloud.executor, 10, 10, lambda: next(moments) * flush_s)
    planner.begin(has_followed=True)
    planner.end()
    assert cloud.table.used["VCPU"].sum() == 1, "nothing is known about the first flush"
    planner.begin(has_followed=True)
    if planned:
        asyncio.run(until(lambda: cloud.table.used["VCPU"].sum() == 2))
    planner.end()
    planner.stop()
    assert cloud.table.used["VCPU"].sum() == 1 + planned


def test_a_defect_of_planning_ahead_changes_no_answer(cloud: Cloud, logs: list[Any]) -> None:
    def fail(request: BootRequest) -> bool:
        raise ZeroDivisionError

    cloud.executor.plan_ahead = fail  # type: ignore[method-assign]

    async def story(held: HeldFlush) -> list[Any]:
        futures = await held.begin(cloud.request())
        held.end()
        return await answers(futures)

    _, booted = run(HeldFlush(cloud), story)
    assert booted.fault is None
    assert [each["event"] for each in logs] == ["planning_ahead_failed"]
