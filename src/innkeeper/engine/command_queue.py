"""The commands that wait for the writer thread, and the order in which they get their turn.

Always true: commands of one group (a project) keep their order. While all waiting commands fit
into one batch, they are taken in the order of their arrival.

If more commands wait than a batch holds, the groups share the batches: the many commands of one
group delay the few commands of another group by at most a batch. The shares are measured in rows,
so that few large commands count as much as many small ones. Source: P. Goyal et al., "Start-time
Fair Queuing" (1996).
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush, nsmallest

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.errors import Unavailable
from innkeeper.engine import callers, metrics
from innkeeper.engine.batches import PendingCommand
from innkeeper.engine.commands import BOOT, Boot

WAITING_MAX = 10_000
"""The maximum number of waiting commands. If more commands waited, clients would give up before
they get an answer."""
GROUP_WAITING_MAX = WAITING_MAX // 2
"""The maximum number of waiting commands of one group, so that one project cannot fill the whole
queue."""
FEW_WAITING = 16
"""Each group may have this number of waiting commands even if the queue is full, because these
commands get their turns soon. The service's own commands form one such group. Some of them keep
this process the leader, so they must not be refused."""


class CommandQueue:
    """The queue of waiting commands.

    Any thread may add commands. Only one thread at a time may call :meth:`take` or
    :meth:`next_boots`.
    """

    def __init__(self) -> None:
        self._arrived: deque[PendingCommand] = deque()
        # Commands that did not fit into a batch, as a heap by (start, number of arrival). The start
        # is the start tag of the paper that the module names. It counts the rows that the command's
        # group was granted before.
        self._ranked: list[tuple[int, int, PendingCommand]] = []
        self._ends: dict[str, int] = {}
        self._now = 0
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._by_group: dict[str, int] = {}
        self._by_kind: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._arrived) + len(self._ranked)

    @property
    def by_kind(self) -> Mapping[str, int]:
        """The number of waiting commands of each kind.

        Kinds whose commands have all got their turn remain in the mapping, with the number 0.
        """
        with self._lock:
            return dict(self._by_kind)

    @property
    def has_boots(self) -> bool:
        """Whether any :class:`Boot` waits."""
        return self._by_kind.get(BOOT, 0) > 0

    def put(self, pending: PendingCommand) -> None:
        """Add a command of the current caller.

        Raises :class:`Unavailable` if too many commands of the caller's group wait. If the whole
        queue is full, only groups with fewer than ``FEW_WAITING`` commands may still add a command.
        """
        pending.caller = callers.current()
        pending.entered_s = time.perf_counter()
        kind, group = pending.command.kind, pending.caller.group
        with self._lock:
            of_group = self._by_group.get(group, 0)
            if len(self) >= WAITING_MAX and of_group >= FEW_WAITING:
                raise Unavailable("Too many requests are waiting already. Retry later.")
            if of_group >= GROUP_WAITING_MAX:
                raise Unavailable("Too many requests of this project are waiting. Retry later.")
            self._by_group[group] = of_group + 1
            self._by_kind[kind] = self._by_kind.get(kind, 0) + 1
            self._arrived.append(pending)

    def take(self, count_max: int, lines_max: int, *, is_first: bool) -> list[PendingCommand]:
        """Take the next commands: at most ``count_max``, with at most ``lines_max`` rows in all.

        With ``is_first``, the first command is taken even if it alone has more than ``lines_max``
        rows.
        """
        new = [self._arrived.popleft() for _ in range(len(self._arrived))]
        if not new and not self._ranked:
            return new
        if self._ranked or not _fits(new, count_max, lines_max):
            for each in new:
                self._rank(each)
            new = self._next(count_max, lines_max, is_first=is_first)
        self._count(new)
        return new

    def next_boots(self, count_max: int, lines_max: int) -> list[BootRequest]:
        """Return the boots that :meth:`take` would take now, in the same order.

        Commands that arrive later may still get their turn before some of these boots. No other
        thread may take commands at the same time.
        """
        with self._lock:
            waiting = list(self._arrived)
            is_ranked = bool(self._ranked) or not _fits(waiting, count_max, lines_max)
            if is_ranked:
                self._arrived.clear()
        if is_ranked:
            # These commands do not fit into one batch, so they will be taken by rank. Ranking them
            # early changes nothing.
            for each in waiting:
                self._rank(each)
            waiting = [each for *_, each in nsmallest(count_max, self._ranked)]
        boots: list[BootRequest] = []
        for each in waiting:
            lines_max -= each.command.lines
            if lines_max < 0:
                break
            if isinstance(each.command, Boot) and not each.is_unwanted:
                boots.append(each.command.request)
        return boots

    def drain(self) -> list[PendingCommand]:
        """Take all commands. The writer thread must have ended."""
        left: list[PendingCommand] = []
        with self._lock:
            left += [each for _, _, each in sorted(self._ranked, key=lambda it: it[1])]
            self._ranked.clear()
            left += self._arrived
            self._arrived.clear()
            self._by_group.clear()
            self._by_kind.clear()
        return left

    def _rank(self, each: PendingCommand) -> None:
        group = each.caller.group
        start = max(self._now, self._ends.get(group, 0))
        self._ends[group] = start + each.command.lines
        heappush(self._ranked, (start, next(self._numbers), each))

    def _next(self, count_max: int, lines_max: int, *, is_first: bool) -> list[PendingCommand]:
        found: list[PendingCommand] = []
        lines = 0
        while self._ranked and len(found) < count_max:
            start, _, each = self._ranked[0]
            lines += each.command.lines
            if lines > lines_max and (found or not is_first):
                break
            heappop(self._ranked)
            self._now = start
            found.append(each)
        if not self._ranked:
            self._ends.clear()
            self._now = 0
        return found

    def _count(self, taken: Sequence[PendingCommand]) -> None:
        kinds: dict[str, int] = {}
        groups: dict[str, int] = {}
        oldest: dict[str, float] = {}
        for each in taken:
            kind, group = each.command.kind, each.caller.group
            groups[group] = groups.get(group, 0) + 1
            kinds[kind] = kinds.get(kind, 0) + 1
            if each.entered_s < oldest.get(kind, math.inf):
                oldest[kind] = each.entered_s
        with self._lock:
            for group, count in groups.items():
                self._by_group[group] -= count
                if not self._by_group[group]:
                    del self._by_group[group]
            for kind, count in kinds.items():
                self._by_kind[kind] -= count
        now_s = time.perf_counter()
        for kind, entered_s in oldest.items():
            metrics.waited(kind, now_s - entered_s)


def _fits(commands: Sequence[PendingCommand], count_max: int, lines_max: int) -> bool:
    return len(commands) <= count_max and sum(e.command.lines for e in commands) <= lines_max
