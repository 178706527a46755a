"""Settle creates whose clients have their answer already, or whose process died meanwhile.

Always true: the routing of a create is on the disk before its pod is asked, with the mark by which
the resource is found again. No later request of a project is served before what its clients were
told is settled, or was looked for. So a client never misses what it was told of.

May be false: that a create is settled when its client has the answer. It is only if other
processes serve the same door: they would not know what is being settled here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence

import structlog

from innkeeper.clients.pods import PodSilent
from innkeeper.domain.door import WITH_SERVERS
from innkeeper.domain.errors import Refusal, Unavailable
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import pods, routings

LOG = structlog.get_logger("innkeeper.pods")
LEFT_MAX = 1_000
"""So many creates of an earlier process are looked for when their projects ask for something. The
periodic task settles the others."""
WAIT_MAX_S = 5.0
"""So long a request waits. A pod that does not answer must not stop all requests of a project."""
RETRY_AFTER_S = 5
LATE = "What was made before is not recorded yet. Try again later."

Settle = Callable[[PodRouting, Sequence[str], Pod], Awaitable[list[str]]]
"""Records what a pod has made. Returns the ids that are recorded."""
Find = Callable[[PodRouting, Pod], Awaitable[Sequence[str]]]
"""Looks in a pod for what has the mark of a create. Raises :class:`PodSilent`."""
Left = tuple[PodRouting, Pod]
"""A create that is not settled, and its pod."""
ReadLeft = Callable[[], Awaitable[Sequence[Left]]]


class ToldCreates:
    """What is being settled, by project, and what an earlier process left to settle."""

    def __init__(
        self, settle: Settle, find: Find, read_left: ReadLeft, wait_max_s: float = WAIT_MAX_S
    ) -> None:
        self._settle = settle
        self._find = find
        self._read_left = read_left
        self._wait_max_s = wait_max_s
        self._busy: dict[str, set[asyncio.Task[None]]] = {}
        self._recording: set[asyncio.Task[None]] = set()
        self._left: dict[str, list[Left]] = {}
        self._silent: dict[str, list[Left]] = {}
        self._reading: asyncio.Task[None] | None = None

    def begin(self, begun: PodRouting, found: Sequence[str], pod: Pod) -> None:
        """Begin to record what a pod has made. The next request of the project waits for it."""
        task = self._start(begun.project_id, self._record(begun, found, pod))
        self._recording.add(task)

        def end(ended: asyncio.Task[None]) -> None:
            self._recording.discard(ended)
            error = None if ended.cancelled() else ended.exception()
            if error is not None:
                # Whatever it was, the next request of the project looks for the resource.
                LOG.error("pod_create_not_settled", pod=pod.pod_name, exc_info=error)
                self._left.setdefault(begun.project_id, []).append((begun, pod))

        task.add_done_callback(end)

    async def wait(self, project_id: str | None) -> None:
        """Wait for what a project was told; with ``None``, for what all projects were told.

        Raises :class:`Unavailable` if it takes too long.
        """
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        if not self._reading.done():
            await asyncio.wait([self._reading], timeout=self._wait_max_s)
        for each in list(self._left) if project_id is None else [project_id]:
            for begun, pod in self._left.pop(each, ()):
                self._start(each, self._look(begun, pod))
        if not self._busy:
            return
        if project_id is None:
            busy = [task for tasks in self._busy.values() for task in tasks]
        else:
            busy = list(self._busy.get(project_id, ()))
        if busy:
            _, late = await asyncio.wait(busy, timeout=self._wait_max_s)
            if late & self._recording:
                raise Unavailable(LATE, retry_after_s=RETRY_AFTER_S)

    async def has_looked_again(self, project_id: str | None) -> bool:
        """Look once more in pods that did not answer, and return whether there was one.

        To be called before a client is told that something does not exist. Raises
        :class:`Unavailable` if a pod does not answer again.
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
        task = asyncio.create_task(work)
        self._busy.setdefault(project_id, set()).add(task)

        def end(ended: asyncio.Task[None]) -> None:
            tasks = self._busy[project_id]
            tasks.discard(ended)
            if not tasks:
                del self._busy[project_id]

        task.add_done_callback(end)
        return task

    async def _record(self, begun: PodRouting, found: Sequence[str], pod: Pod) -> None:
        if not await self._settle(begun, found, pod):
            LOG.error("pod_ids_not_unique", pod=pod.pod_name, ids=list(found))

    async def _look(self, begun: PodRouting, pod: Pod) -> None:
        """Look for what a pod made for an earlier process. The periodic task looks again."""
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
            # Their servers tell what became of them.
            and not each.top_id.startswith(WITH_SERVERS)
        ]

    return lambda: clouds.engine.read(look)
