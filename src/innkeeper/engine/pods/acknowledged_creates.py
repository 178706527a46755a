"""Settle creates that were answered before they were recorded, or whose process has died.

To settle a create is to record what its pod (a cloud behind this service) has made. A request can
also wait here for the work that follows the answer to a delete.

Always true: before a pod is asked to create something, the routing (the record of where a resource
is) is on the disk. The routing has the mark by which the resource is found again. After a client
was told of a create, later requests of its project wait until the create is settled, or until its
pod was searched for it. So a client never misses a resource that it was told of. Only the next
create need not wait, because its transaction also settles the earlier creates.

A client may get the answer before its create is settled. If several processes serve the same door
(gateway), however, every create is settled before the answer, because each process knows only its
own unsettled creates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context
from enum import Enum, auto
from typing import TypeVar

import structlog

from innkeeper.clients.pods import PodSilent
from innkeeper.domain.door import WITH_SERVERS
from innkeeper.domain.errors import Refusal, Unavailable
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import pods, routings

LOG = structlog.get_logger("innkeeper.pods")
T = TypeVar("T")
LEFT_MAX = 1_000
"""Of the creates that an earlier process left, at most this many are settled when their projects
next send a request. The periodic task settles the others."""
WAIT_MAX_S = 5.0
"""The maximum time for which a request waits. A pod that does not answer must not stop all requests
of a project."""
RETRY_AFTER_S = 5
LATE = "An earlier create is not recorded yet. Try again later."

Settle = Callable[[PodRouting, Sequence[str], Pod], Awaitable[list[str]]]
"""A function that records what a pod has made, and returns the ids that are recorded."""
Hasten = Callable[[], None]
"""A function that commits at once the records that wait for the next write."""
Find = Callable[[PodRouting, Pod], Awaitable[Sequence[str]]]
"""A function that returns the ids of the resources with a create's mark in a pod. It may raise
:class:`PodSilent`."""
Left = tuple[PodRouting, Pod]
"""A create that is not settled, and its pod."""
ReadLeft = Callable[[], Awaitable[Sequence[Left]]]


class Reads(Enum):
    """What a request reads. This decides what the request waits for.

    A ``CREATE`` reads in a transaction that also writes, and sees earlier creates that are recorded
    in the same commit. So it does not wait for such records, but only for answers of pods. A
    request about ``ONE`` resource does not wait for the end of deletes, because it asks the
    resource's pod.
    """

    ALL = auto()
    CREATE = auto()
    ONE = auto()


class AcknowledgedCreates:
    """The unsettled creates of each project, and the deletes that are not recorded yet."""

    def __init__(
        self,
        settle: Settle,
        find: Find,
        read_left: ReadLeft,
        hasten: Hasten,
        wait_max_s: float = WAIT_MAX_S,
    ) -> None:
        self._settle = settle
        self._find = find
        self._hasten = hasten
        self._read_left = read_left
        self._wait_max_s = wait_max_s
        self._busy: dict[str, set[asyncio.Task[None]]] = {}
        self._recording: set[asyncio.Task[None]] = set()
        self._following: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._left: dict[str, list[Left]] = {}
        self._silent: dict[str, list[Left]] = {}
        self._reading: asyncio.Task[None] | None = None

    def begin(self, begun: PodRouting, pod: Pod, recorded: Awaitable[list[str]]) -> None:
        """Note that a create is being recorded. Later reads of the project wait for the record.

        ``recorded`` returns the recorded ids.
        """
        task = self._start(begun.project_id, self._record(pod, recorded))
        self._recording.add(task)

        def end(ended: asyncio.Task[None]) -> None:
            self._recording.discard(ended)
            error = None if ended.cancelled() else ended.exception()
            if error is not None:
                # After any error, the next request of the project looks for the resource in the
                # pod.
                LOG.error("pod_create_not_settled", pod=pod.pod_name, exc_info=error)
                self._left.setdefault(begun.project_id, []).append((begun, pod))

        task.add_done_callback(end)

    def follow(self, project_id: str, work: Coroutine[None, None, None]) -> None:
        """Run ``work``, which finishes a delete after its answer.

        If ``work`` fails, a periodic task finishes the delete.
        """
        task = self._start(project_id, work)
        self._following.add(task)

        def end(ended: asyncio.Task[None]) -> None:
            self._following.discard(ended)
            error = None if ended.cancelled() else ended.exception()
            if error is not None:
                LOG.error("pod_delete_not_settled", exc_info=error)

        task.add_done_callback(end)

    async def recorded(self, answer: Awaitable[T]) -> T:
        """Await the answer of a write in the next commit. If requests wait, commit at once."""
        if self._waiting:
            self._hasten()
        return await answer

    async def wait(self, project_id: str | None, reads: Reads = Reads.ALL) -> None:
        """Wait until all answered creates of a project are settled.

        ``None`` stands for all projects. Raises :class:`Unavailable` if settling takes too long.
        """
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), context=Context())
        if not self._reading.done():
            await asyncio.wait([self._reading], timeout=self._wait_max_s)
        for each in list(self._left) if project_id is None else [project_id]:
            for begun, pod in self._left.pop(each, ()):
                self._start(each, self._look(begun, pod))
        busy = self._busy_of(project_id)
        if reads is Reads.CREATE:
            busy -= self._recording
        elif reads is Reads.ONE:
            busy -= self._following
        if busy:
            await self._end_of(busy)

    async def _end_of(self, busy: set[asyncio.Task[None]]) -> None:
        self._waiting += 1
        try:
            if not busy.isdisjoint(self._recording | self._following):
                self._hasten()
            _, late = await asyncio.wait(busy, timeout=self._wait_max_s)
        finally:
            self._waiting -= 1
        if late & self._recording:
            raise Unavailable(LATE, retry_after_s=RETRY_AFTER_S)

    def _busy_of(self, project_id: str | None) -> set[asyncio.Task[None]]:
        if project_id is None:
            return {task for tasks in self._busy.values() for task in tasks}
        return set(self._busy.get(project_id, ()))

    async def has_looked_again(self, project_id: str | None) -> bool:
        """Look again for creates in pods that did not answer. Return whether there were such
        creates.

        Call this before a client is told that something does not exist. Raises :class:`Unavailable`
        if such a pod still does not answer.
        """
        wanted = list(self._silent) if project_id is None else [project_id]
        again = {each: self._silent.pop(each) for each in wanted if each in self._silent}
        if not again:
            return False
        self._left |= {each: [*self._left.get(each, ()), *more] for each, more in again.items()}
        await self.wait(project_id)
        if any(each in self._silent or each in self._busy for each in again):
            raise Unavailable(LATE, retry_after_s=RETRY_AFTER_S)
        return True

    def _start(self, project_id: str, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        # The work gets an empty context, so that it goes on if the caller's client leaves.
        task = asyncio.create_task(work, context=Context())
        self._busy.setdefault(project_id, set()).add(task)

        def end(ended: asyncio.Task[None]) -> None:
            tasks = self._busy[project_id]
            tasks.discard(ended)
            if not tasks:
                del self._busy[project_id]

        task.add_done_callback(end)
        return task

    async def _record(self, pod: Pod, recorded: Awaitable[list[str]]) -> None:
        if not await recorded:
            LOG.error("pod_ids_not_unique", pod=pod.pod_name)

    async def _look(self, begun: PodRouting, pod: Pod) -> None:
        """Look for what a pod has made for a create. If everything was made, record it."""
        try:
            found = await self._find(begun, pod)
            if len(found) >= (begun.number or 1):
                await self._settle(begun, found, pod)
        except (PodSilent, Refusal) as error:
            LOG.warning("pod_not_settled", pod=pod.pod_name, reason=str(error))
            self._silent.setdefault(begun.project_id, []).append((begun, pod))

    async def _read(self) -> None:
        try:
            left = await self._read_left()
        except Refusal as error:
            LOG.warning("pod_creates_not_read", reason=str(error))
            self._reading = None
            return
        for begun, pod in left:
            self._left.setdefault(begun.project_id, []).append((begun, pod))


def left_before(clouds: PodClouds) -> ReadLeft:
    """Return a function that reads the creates that were begun before now, and are not settled."""
    started_at = clouds.clock()

    def look(tx: Tx) -> list[Left]:
        by_id = {each.id: each for each in pods.every(tx)}
        return [
            (each, by_id[each.pod_id])
            for each in routings.open_ones(tx, list(by_id), LEFT_MAX)
            if each.bottom_id is None
            and each.created_at < started_at
            # The volumes of servers are settled by asking for their servers.
            and not each.top_id.startswith(WITH_SERVERS)
        ]

    return lambda: clouds.engine.read(look)
