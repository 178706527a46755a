"""Waiting commands get their turns fairly, and are dropped once nobody waits for them."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import pytest
from prometheus_client import REGISTRY

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.errors import ClientLeft, Unavailable
from innkeeper.engine import callers, command_queue, metrics, writer
from innkeeper.engine.batches import PendingCommand
from innkeeper.engine.callers import Caller, ClientConnection
from innkeeper.engine.command_queue import CommandQueue
from innkeeper.engine.commands import Boot, Command, Write
from innkeeper.engine.writer import Writer
from innkeeper.store.transactions import Tx
from tests.support.clouds import NOW, Cloud

WITHIN_S = 10.0
FLOOD, FEW = "flooding", "few"
NUMBERS = itertools.count()


def nothing(tx: Tx) -> None:
    """No work."""


def put(queue: CommandQueue, group: str, command: Command[Any]) -> None:
    """Add a command of a group's client."""

    def enter() -> None:
        callers.enter(Caller(group))
        queue.put(PendingCommand(command))

    copy_context().run(enter)


def taken(queue: CommandQueue, lines_max: int = 100, count_max: int = 100) -> list[str]:
    """The groups of the commands in the next batch."""
    found = queue.take(count_max, lines_max, is_first=True)
    return [each.caller.group for each in found]


def of(lines: int = 1) -> Command[Any]:
    return Write(nothing, lines)


def test_few_commands_are_taken_in_the_order_of_their_arrival() -> None:
    queue = CommandQueue()
    arrived = [FLOOD, FLOOD, FLOOD, FEW, FLOOD, FEW]
    for group in arrived:
        put(queue, group, of())
    assert taken(queue) == arrived
    assert len(queue) == 0


def test_a_flood_delays_a_command_of_others_by_no_batch() -> None:
    queue = CommandQueue()
    for _ in range(1000):
        put(queue, FLOOD, of())
    assert taken(queue) == [FLOOD] * 100
    put(queue, FEW, of())
    second = taken(queue)
    assert len(second) == 100
    assert second.count(FEW) == 1


def test_groups_that_flood_get_equal_shares() -> None:
    queue = CommandQueue()
    for group in ("a", "b", "c"):
        for _ in range(300):
            put(queue, group, of())
    found = taken(queue, count_max=90, lines_max=90)
    assert [found.count(group) for group in ("a", "b", "c")] == [30, 30, 30]


def test_shares_are_measured_in_rows() -> None:
    queue = CommandQueue()
    for _ in range(10):
        put(queue, FLOOD, of(50))
    for _ in range(60):
        put(queue, FEW, of())
    found = taken(queue) + taken(queue)
    assert found.count(FEW) == 60
    assert found.count(FLOOD) == 2


def test_commands_of_a_group_keep_their_order() -> None:
    queue = CommandQueue()
    commands = [of(1 + number % 3) for number in range(200)]
    for command in commands:
        put(queue, FLOOD, command)
        put(queue, FEW, of())
    found: list[Command[Any]] = []
    while len(queue):
        batch = queue.take(7, 10, is_first=True)
        found += [each.command for each in batch if each.caller.group == FLOOD]
    assert [id(each) for each in found] == [id(each) for each in commands]


def test_a_batch_of_several_commands_is_bounded() -> None:
    queue = CommandQueue()
    for lines in (60, 60, 500, 30):
        put(queue, FLOOD, of(lines))
    assert [len(taken(queue)) for _ in range(4)] == [1, 1, 1, 1]
    put(queue, FLOOD, of(60))
    assert queue.take(100, 40, is_first=False) == []
    assert len(queue) == 1


def test_one_group_cannot_fill_the_queue() -> None:
    queue = CommandQueue()
    for _ in range(command_queue.GROUP_WAITING_MAX):
        put(queue, FLOOD, of())
    with pytest.raises(Unavailable, match="of this project"):
        put(queue, FLOOD, of())
    put(queue, FEW, of())
    for _ in range(command_queue.WAITING_MAX - command_queue.GROUP_WAITING_MAX - 1):
        put(queue, "others", of())
    with pytest.raises(Unavailable, match="Too many requests are waiting"):
        put(queue, "others", of())
    # Commands that were taken do not count any more.
    taken(queue)
    put(queue, FLOOD, of())


def test_groups_that_fill_the_queue_leave_room_for_a_few_commands_of_others() -> None:
    """Otherwise, the leader's heartbeats would be refused, and it would lose the lead."""
    queue = CommandQueue()
    for number in range(command_queue.WAITING_MAX):
        put(queue, f"{FLOOD}-{number % 3}", of())
    for _ in range(command_queue.FEW_WAITING):
        put(queue, callers.OWN, of())
    with pytest.raises(Unavailable, match="Too many requests are waiting"):
        put(queue, callers.OWN, of())
    assert taken(queue).count(callers.OWN) == command_queue.FEW_WAITING


def boot() -> Boot:
    """A boot of a project, told apart from others by its name."""
    name = f"web-{next(NUMBERS)}"
    return Boot(BootRequest("p", "u", "req-1", name, "small", (), "r-1", 1, NOW))


@pytest.mark.parametrize("flood", [0, 5, 40, 300])
def test_the_next_boots_are_known_in_the_order_in_which_they_are_taken(flood: int) -> None:
    queue = CommandQueue()
    for number in range(flood):
        put(queue, FLOOD, of() if number % 3 else boot())
    for _ in range(2):
        for number in range(30):
            put(queue, str(number % 7), boot() if number % 2 else of(2))
        known = queue.next_boots(50, 100)
        batch = [each.command for each in queue.take(50, 100, is_first=True)]
        assert known == [each.request for each in batch if isinstance(each, Boot)]
        assert known


def test_the_next_boots_are_known_only_as_far_as_a_batch_has_room() -> None:
    queue = CommandQueue()
    had_boots = []
    for command in (of(90), boot(), of(20), boot()):
        had_boots.append(queue.has_boots)
        put(queue, FEW, command)
    assert had_boots == [False, False, True, True]
    assert len(queue.next_boots(100, 100)) == 1
    assert len(queue.next_boots(100, 200)) == 2
    assert len(queue) == 4, "none of them was taken"


def test_the_boot_of_a_client_that_has_left_is_not_known() -> None:
    queue = CommandQueue()
    gone = ClientConnection()

    def enter() -> None:
        callers.enter(Caller(FEW, gone))
        queue.put(PendingCommand(boot()))

    copy_context().run(enter)
    assert len(queue.next_boots(100, 100)) == 1
    gone.is_closed = True
    assert queue.next_boots(100, 100) == []


def test_drained_commands_are_all_there_once() -> None:
    queue = CommandQueue()
    for number in range(300):
        put(queue, str(number % 7), of())
    taken(queue)
    put(queue, FEW, of())
    assert len(queue.drain()) == 201
    assert len(queue) == 0


class Blocked:
    """A writer whose thread carries out a command that waits until the test opens the gate."""

    def __init__(self, cloud: Cloud) -> None:
        self.writer = Writer(cloud.store, cloud.executor)
        self._is_there, self._gate = threading.Event(), threading.Event()
        self.done: list[str] = []

    async def __aenter__(self) -> Blocked:
        self.writer.start()
        self._blocker = asyncio.create_task(self.writer.submit(Write(self._wait)))
        await asyncio.to_thread(self._is_there.wait, WITHIN_S)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.open()
        await self._blocker
        await asyncio.to_thread(self.writer.stop, WITHIN_S)

    def _wait(self, tx: Tx) -> None:
        self._is_there.set()
        self._gate.wait(WITHIN_S)

    def open(self) -> None:
        """Let the thread go on."""
        self._gate.set()

    async def submit(self, name: str, caller: Caller, *more: str) -> None:
        """Submit a write that notes the name, and then one write for each further name."""
        callers.enter(caller)
        for each in (name, *more):

            def note(tx: Tx, each: str = each) -> None:
                self.done.append(each)

            with suppress(ClientLeft):
                await self.writer.submit(Write(note))

    def begin(self, name: str, caller: Caller, *more: str) -> asyncio.Task[None]:
        """Call :meth:`submit` as a request of its own."""
        return asyncio.create_task(self.submit(name, caller, *more))


async def settled() -> None:
    """Let the tasks run until they wait for the thread."""
    for _ in range(5):
        await asyncio.sleep(0)


Check = Callable[[Blocked], Any]


def run(cloud: Cloud, check: Check) -> None:
    async def whole() -> None:
        async with Blocked(cloud) as blocked:
            await asyncio.wait_for(check(blocked), WITHIN_S)

    asyncio.run(whole())


def dropped() -> float:
    """The number of writes that were dropped in this process."""
    found = REGISTRY.get_sample_value("innkeeper_dropped_steps_total", {"kind": "write"})
    return 0.0 if found is None else found


def test_the_command_of_a_client_that_has_left_is_not_carried_out(cloud: Cloud) -> None:
    async def check(blocked: Blocked) -> None:
        before = dropped()
        gone, there = ClientConnection(), ClientConnection()
        tasks = [
            blocked.begin("gone", Caller("p", gone)),
            blocked.begin("there", Caller("p", there)),
        ]
        await settled()
        gone.is_closed = True
        blocked.open()
        await asyncio.gather(*tasks)
        assert blocked.done == ["there"]
        assert dropped() == before + 1

    run(cloud, check)


def test_a_request_that_has_begun_is_finished(cloud: Cloud) -> None:
    async def check(blocked: Blocked) -> None:
        connection = ClientConnection()
        caller = Caller("p", connection)
        task = blocked.begin("first", caller, "second")
        await settled()
        blocked.open()
        while not blocked.done:
            await asyncio.sleep(0.001)
        connection.is_closed = True
        await task
        assert blocked.done == ["first", "second"]

    run(cloud, check)


def test_a_request_that_must_finish_does_not_depend_on_its_client(cloud: Cloud) -> None:
    async def check(blocked: Blocked) -> None:
        connection = ClientConnection()
        caller = Caller("p", connection)
        caller.must_finish()
        task = blocked.begin("finished", caller)
        await settled()
        connection.is_closed = True
        blocked.open()
        await task
        assert blocked.done == ["finished"]

    run(cloud, check)


def test_a_cancelled_command_is_not_carried_out(cloud: Cloud) -> None:
    async def check(blocked: Blocked) -> None:
        task = blocked.begin("cancelled", Caller("p"))
        await settled()
        task.cancel()
        await settled()
        other = blocked.begin("other", Caller("p"))
        blocked.open()
        await other
        assert task.cancelled()
        assert blocked.done == ["other"]

    run(cloud, check)


def test_a_project_that_floods_does_not_delay_another_one(cloud: Cloud) -> None:
    async def check(blocked: Blocked) -> None:
        flood = 3 * writer.BATCH_MAX
        tasks = [blocked.begin(FLOOD, Caller(FLOOD)) for _ in range(flood)]
        tasks += [blocked.begin(FEW, Caller(FEW))]
        await settled()
        blocked.open()
        await asyncio.gather(*tasks)
        assert blocked.done.count(FLOOD) == flood
        assert blocked.done.index(FEW) < writer.BATCH_MAX

    run(cloud, check)


def test_waiting_commands_and_their_waits_are_counted_by_kind(cloud: Cloud) -> None:
    def waits() -> float:
        metrics.LATER.settle()
        name, labels = "innkeeper_wait_seconds_sum", {"kind": "write"}
        return REGISTRY.get_sample_value(name, labels) or 0.0

    async def check(blocked: Blocked) -> None:
        tasks = [blocked.begin(FEW, Caller(FEW)) for _ in range(3)]
        await settled()
        assert blocked.writer.waiting["write"] == 3
        before, pause_s = waits(), 0.05
        await asyncio.sleep(pause_s)
        blocked.open()
        await asyncio.gather(*tasks)
        assert blocked.writer.waiting["write"] == 0
        assert waits() >= before + pause_s

    run(cloud, check)
