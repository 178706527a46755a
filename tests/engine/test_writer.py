"""The writer thread answers every command, whatever fails, and reports its own end."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from innkeeper.clients.streams import LosingStream
from innkeeper.domain.errors import Conflict, Unavailable
from innkeeper.engine import metrics, writer
from innkeeper.engine.commands import Boot, Write, WriteTogether
from innkeeper.engine.writer import Writer
from innkeeper.store.transactions import Tx
from tests.support.clouds import Cloud

WITHIN_S = 10.0
ENDS_BY_ACCIDENT = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)
"""The thread's end shows on standard error, which pytest reports as a warning."""


@pytest.fixture(autouse=True)
def log_settings() -> Iterator[None]:
    """Restore the log's settings."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


Ask = Callable[[Writer], Any]


def answers(thread: Writer, *asks: Ask) -> list[Any]:
    """The answers to commands that are submitted at once; a missing one fails the test."""

    async def all_of_them() -> list[Any]:
        waiting = (asyncio.wait_for(ask(thread), WITHIN_S) for ask in asks)
        return await asyncio.gather(*waiting, return_exceptions=True)

    try:
        return asyncio.run(all_of_them())
    finally:
        thread.stop(WITHIN_S)


def written(work: Callable[[Tx], Any]) -> Ask:
    return lambda thread: thread.submit(Write(work))


def raising(error: BaseException) -> Ask:
    def work(tx: Tx) -> None:
        raise error

    return written(work)


def waits_for_the_others(tx: Tx) -> str:
    """No work: a command that shares a batch with others."""
    return "done"


def started(cloud: Cloud, executor: Any = None) -> Writer:
    thread = Writer(cloud.store, executor or cloud.executor)
    thread.start()
    return thread


class Unread:
    """The stream of a log whose reader is gone."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        os.close(reading)

    def write(self, text: str) -> int:
        """Fail as the system does."""
        return os.write(self._writing, text.encode())

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        """Close nothing."""
        os.close(self._writing)


@pytest.fixture
def unread() -> Iterator[Any]:
    """See :class:`Unread`."""
    stream = Unread()
    yield stream
    stream.close()


def log_to(stream: Any) -> None:
    structlog.configure(
        processors=[structlog.processors.LogfmtRenderer()],
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )


def test_a_broken_log_stream_changes_no_answer(cloud: Cloud, unread: Any) -> None:
    log_to(LosingStream(unread))
    boom = ZeroDivisionError()
    answered = answers(
        started(cloud), raising(boom), *[written(waits_for_the_others) for _ in range(3)]
    )
    assert answered == [boom, "done", "done", "done"]


@ENDS_BY_ACCIDENT
def test_commands_that_wait_when_the_thread_ends_are_refused(cloud: Cloud, unread: Any) -> None:
    """Here the log raises the error, because no other part of the thread is known to fail."""
    log_to(unread)
    thread = started(cloud)
    others = [written(waits_for_the_others) for _ in range(300)]
    answered = answers(thread, raising(ZeroDivisionError()), *others)
    assert {type(each) for each in answered} == {Unavailable}
    assert not thread.is_alive
    assert [type(each) for each in answers(thread, written(waits_for_the_others))] == [Unavailable]


@ENDS_BY_ACCIDENT
def test_a_command_that_kills_the_thread_refuses_the_waiting_ones(cloud: Cloud) -> None:
    thread = started(cloud)
    answered = answers(thread, raising(SystemExit(3)), written(waits_for_the_others))
    assert [type(each) for each in answered] == [Unavailable, Unavailable]
    assert not thread.is_alive


def test_a_command_may_raise_stop_iteration(cloud: Cloud) -> None:
    with capture_logs():
        answered = answers(started(cloud), raising(StopIteration(7)), written(waits_for_the_others))
    assert isinstance(answered[0], RuntimeError)
    assert isinstance(answered[0].__cause__, StopIteration)
    assert answered[1] == "done"


class OddExecutor:
    """Answers boots with a result that cannot be counted."""

    def begin(self, tx: Tx) -> None:
        """See ``Executor``."""

    def boot(self, tx: Tx, requests: Sequence[Any]) -> list[Any]:
        """See ``Executor``."""
        return list(requests)

    def explain(self, tx: Tx, request: Any) -> Any:
        """See ``Executor``."""
        return request

    @property
    def may_plan_ahead(self) -> bool:
        """See ``Executor``."""
        return False

    def plan_ahead(self, request: Any) -> bool:
        """See ``Executor``."""
        return False

    def plans_ahead(self) -> tuple[int, int]:
        """See ``Executor``."""
        return 0, 0

    def follow(self, tx: Tx) -> None:
        """See ``Executor``."""

    def forget(self) -> None:
        """See ``Executor``."""


def test_a_failing_metric_changes_no_answer(cloud: Cloud) -> None:
    request = cloud.request()
    with capture_logs() as logs:
        answered = answers(
            started(cloud, OddExecutor()),
            lambda thread: thread.submit(Boot(request)),
            written(waits_for_the_others),
        )
    assert answered == [request, "done"]
    assert [each["event"] for each in logs] == ["commit_uncounted"]


def test_an_observation_that_cannot_be_counted_ends_no_thread(cloud: Cloud) -> None:
    def broken(amount: float) -> None:
        raise OSError(amount)

    counted = list[float]()
    with capture_logs() as lines:
        thread = started(cloud)
        metrics.LATER.add(broken, 1)
        assert answers(thread, written(lambda tx: "done")) == ["done"]
        # A writer thread that ends counts what is left.
        another = started(cloud)
        metrics.LATER.add(counted.append, 2)
        another.stop(WITHIN_S)
    assert counted == [2]
    assert [each["event"] for each in lines].count("commit_uncounted") == 1


def test_waiting_commands_finish_before_the_thread_stops(cloud: Cloud) -> None:
    thread = started(cloud)
    answered = answers(thread, *[written(waits_for_the_others) for _ in range(600)])
    assert answered == ["done"] * 600
    assert not thread.is_alive


def joined(work: Callable[[Tx, Sequence[Any]], list[Any]], item: Any) -> Ask:
    return lambda thread: thread.submit(WriteTogether(work, item))


def test_items_of_one_work_are_refused_one_by_one(cloud: Cloud) -> None:
    seen: list[list[int]] = []

    def work(tx: Tx, items: Sequence[int]) -> list[Any]:
        seen.append(list(items))
        return [Conflict(f"{item} is odd.") if item % 2 else None for item in items]

    other = written(waits_for_the_others)
    answered = answers(started(cloud), *[joined(work, item) for item in range(4)], other)
    assert [type(each) for each in answered] == [type(None), Conflict, type(None), Conflict, str]
    assert sorted(item for items in seen for item in items) == [0, 1, 2, 3]


def test_large_commands_share_a_commit_with_fewer_others(cloud: Cloud) -> None:
    seen: list[int] = []

    def work(tx: Tx, items: Sequence[int]) -> list[Any]:
        seen.append(len(items))
        return [None] * len(items)

    def ask(thread: Writer) -> Any:
        return thread.submit(WriteTogether(work, 0, writer.LINES_MAX // 2))

    assert answers(started(cloud), *[ask] * 9) == [None] * 9
    assert sum(seen) == 9
    assert max(seen) == 2


def test_an_item_that_fails_shared_work_fails_alone(cloud: Cloud) -> None:
    def work(tx: Tx, items: Sequence[int]) -> list[Any]:
        tx.exec_driver_sql("UPDATE agents SET name = name || ?", (f" {len(items)}",))
        if 3 in items:
            raise ZeroDivisionError
        return [None] * len(items)

    with capture_logs():
        answered = answers(started(cloud), *[joined(work, item) for item in range(1, 6)])
    assert [type(each) for each in answered if each] == [ZeroDivisionError]
    with cloud.store.read() as tx:
        (name,) = tx.exec_driver_sql("SELECT name FROM agents").scalars()
    parts = [int(part) for part in str(name).split()[1:]]
    assert sum(parts) == 4


def breaks(tx: Tx) -> None:
    raise RuntimeError("The disk is gone.")


def test_a_service_is_failing_until_one_write_succeeds(cloud: Cloud) -> None:
    thread = Writer(cloud.store, cloud.executor)
    thread.start()

    async def one_after_the_other(work: Callable[[Tx], Any], times: int) -> bool:
        for _ in range(times):
            with suppress(RuntimeError, Conflict):
                await asyncio.wait_for(thread.submit(Write(work)), WITHIN_S)
        return thread.is_failing

    def refuses(tx: Tx) -> None:
        raise Conflict("That is there already.")

    try:
        assert not asyncio.run(one_after_the_other(refuses, writer.FAILURES_MAX))
        assert not asyncio.run(one_after_the_other(breaks, writer.FAILURES_MAX - 1))
        assert asyncio.run(one_after_the_other(breaks, 1))
        assert not asyncio.run(one_after_the_other(waits_for_the_others, 1))
    finally:
        thread.stop(WITHIN_S)


def test_commands_from_many_threads_are_all_answered(cloud: Cloud) -> None:
    """A late notification about a finished step does not end the thread."""
    thread = started(cloud)
    answered: list[str] = []

    def writes() -> None:
        for _ in range(100):
            answered.append(thread.submit_and_wait(Write(waits_for_the_others), WITHIN_S))

    writers = [threading.Thread(target=writes) for _ in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    try:
        assert answered == ["done"] * 400
        assert thread.is_alive
    finally:
        thread.stop(WITHIN_S)


def test_the_writer_waits_only_briefly_for_further_commands(cloud: Cloud) -> None:
    thread = started(cloud)

    async def twenty_and_then_one() -> float:
        many = (thread.submit(Write(waits_for_the_others)) for _ in range(20))
        await asyncio.wait_for(asyncio.gather(*many), WITHIN_S)
        begun_s = time.perf_counter()
        await asyncio.wait_for(thread.submit(Write(waits_for_the_others)), WITHIN_S)
        return time.perf_counter() - begun_s

    try:
        # Far above the longest wait, since the machine may be busy.
        assert asyncio.run(twenty_and_then_one()) < 200 * writer.GATHER_MAX_S
    finally:
        thread.stop(WITHIN_S)
