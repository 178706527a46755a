"""What the steady filters and weighers said of all hosts, by the shape of the request.

Most requests have one of few shapes. Their masks and weights are remembered, and of a table
that was edited only the edited rows are judged again.

Always true after :meth:`Memories.recall`: each row's weight and the filter that removed it are
what the pipeline would say now, to the last bit; ``counts`` are those of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.errors import PluginFailed
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import (
    ALL_ROWS,
    Active,
    Filter,
    Pipeline,
    Taken,
    Weights,
    active,
    add_up,
    numbers,
)
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

Codes = npt.NDArray[np.uint8]
Ground = tuple[object, ...]
GONE = -np.inf
"""The weight of a host that a filter removed."""
LEFT = 255
"""Stands for the filter that removed a host where none did."""
SHAPES_MAX = 32
"""Shapes that are remembered; of 100,000 hosts each takes a megabyte."""
ALONE_MAX = 2
"""So many edited rows are judged one by one; three together take as long as three alone, and
many hardly longer."""


class Memory:
    """What one shape comes to on one table.

    ``weights`` has ``GONE`` where a filter removed the host, and is not to be written to.
    ``counts[i]`` is how many hosts the i-th steady filter removed, the last is who is left.
    """

    def __init__(self, pipeline: Pipeline, hosts: HostTable, spec: RequestSpec) -> None:
        self.pipeline = pipeline
        self._hosts = hosts
        self._rules = spec.rules
        self._place = 0
        self._pool_place = 0
        self.is_whole = True
        """Whether the last look came to its end; a filter of the operator's own may fail."""
        self._look_at_all(spec)

    weights: Weights
    removed_by: Codes
    counts: list[int]
    _able: list[bytes | None]
    weighers: tuple[Active, ...]
    """The steady ones that have something to weigh for this shape."""

    @property
    def left(self) -> int:
        """How many hosts passed all steady filters."""
        return self.counts[-1]

    def taken(self) -> Taken:
        """The filters that removed hosts, and how many each."""
        numbered = zip(self.pipeline.steady_filters, self.counts, strict=False)
        return [(each, count) for each, count in numbered if count]

    def renew(self, hosts: HostTable, spec: RequestSpec) -> None:
        """Bring this up to what the table shows now, for a request of the same shape."""
        is_other = hosts is not self._hosts or spec.rules != self._rules
        if is_other or self._ground != self._ground_now(hosts, spec):
            self._hosts = hosts
            self._look_at_all(spec)
        else:
            self.look_again(spec)

    def _ground_now(self, hosts: HostTable, spec: RequestSpec) -> Ground:
        """What must be as it was for edits of rows to be all that changed."""
        stamps = [each.stamp(hosts, spec) for each in self._stamped]
        scales = [each.scale(hosts, spec) for each, _ in self.pipeline.steady_weighers]
        known = (len(hosts.traits), len(hosts.free), hosts.aggregates.version)
        return (hosts.epoch, hosts.pools.epoch, known, stamps, scales)

    def look_again(self, spec: RequestSpec) -> None:
        """Judge the rows that were edited since the last look, or whose pools were."""
        hosts = self._hosts
        rows = set(hosts.edits[self._place :])
        self._place = len(hosts.edits)
        if self._pool_place < len(hosts.pools.edits):
            self._look_at_borrowers(rows, spec)
        elif len(rows) <= ALONE_MAX:
            for index in rows:
                self._look_at(index, spec)
        else:
            at = np.fromiter(rows, dtype=np.intp, count=len(rows))
            self._judge_again(at, spec)
            self._weigh_again(at, spec)

    def _look_at_borrowers(self, rows: Collection[int], spec: RequestSpec) -> None:
        """Look at rows, and at the hosts whose pools have more or less left than they had.

        These weigh something else now; most of the time the same filters remove them.
        """
        hosts = self._hosts
        edited = set(hosts.pools.edits[self._pool_place :])
        self._pool_place = len(hosts.pools.edits)
        concerned = hosts.served_by(edited)
        at = np.fromiter(rows, dtype=np.intp, count=len(rows))
        concerned[at] = True
        everybody = ALL_ROWS if concerned.all() else concerned.nonzero()[0]
        able = self._able_now(spec)
        self._judge_again(at if able == self._able else everybody, spec)
        self._able = able
        self._weigh_again(everybody, spec)

    def _able_now(self, spec: RequestSpec) -> list[bytes | None]:
        """All that filters may ask of pools: whether they give what is asked for, to whom."""
        able = [self._hosts.pools.able(*each) for each in spec.amounts.items()]
        return [None if each is None else each.tobytes() for each in able]

    def _judge_again(self, rows: Rows, spec: RequestSpec) -> None:
        before, codes = self.removed_by[rows], self._judge(spec, rows)
        differs = before != codes
        for was, now in zip(before[differs].tolist(), codes[differs].tolist(), strict=True):
            self._recount(was, now)
        self.removed_by[rows] = codes

    def _weigh_again(self, rows: Rows, spec: RequestSpec) -> None:
        self.weights[rows] = self._weigh(spec, rows, self.removed_by[rows])

    def follow(self, spec: RequestSpec) -> None:
        """Bring this up to what a pick left, which changed its host's row, and its pools'."""
        hosts = self._hosts
        self.is_whole = False
        if (hosts.epoch, hosts.pools.epoch) == self._ground[:2] and not self._is_moved:
            self.look_again(spec)
        else:
            self.renew(hosts, spec)
        self.is_whole = True

    def _look_at_all(self, spec: RequestSpec) -> None:
        hosts, pipeline = self._hosts, self.pipeline
        self._rules = spec.rules
        self._place, self._pool_place = len(hosts.edits), len(hosts.pools.edits)
        self._able = self._able_now(spec)
        self._asked = tuple(enumerate(pipeline.steady_filters))
        self.weighers = active(pipeline.steady_weighers, hosts, spec)
        masks = [each.mask(hosts, spec, ALL_ROWS) for _, each in self._asked]
        # Who has nothing to say of this shape is not asked again, as long as the ground holds.
        pairs = zip(self._asked, masks, strict=True)
        self._asked = tuple(asked for asked, mask in pairs if mask is not None)
        heard = [*(each for _, each in self._asked), *(each for each, *_ in self.weighers)]
        self._stamped: list[Any] = [each for each in heard if hasattr(each, "stamp")]
        # Weighers of which a pick may move more than its host.
        self._is_moved = any(hasattr(each, "stamp") for each, *_ in self.weighers)
        self._ground = self._ground_now(hosts, spec)
        self.removed_by = self._codes([mask for mask in masks if mask is not None], ALL_ROWS)
        self.weights = self._weigh(spec, ALL_ROWS, self.removed_by)
        self._count()

    def _look_at(self, index: int, spec: RequestSpec) -> None:
        """Judge one row: what is done with many, without arrays of one where that saves."""
        code = self._who_removes(index, spec)
        self._recount(int(self.removed_by[index]), code)
        self.removed_by[index] = code
        if code != LEFT:
            self.weights[index] = GONE
            return
        given = add_up(self.weighers, self._hosts, spec, slice(index, index + 1))
        weight = 0.0 if given is None else given[0]
        self.weights[index] = weight if math.isfinite(weight) else 0.0

    def _recount(self, was: int, now: int) -> None:
        if was != now:
            self.counts[was if was != LEFT else -1] -= 1
            self.counts[now if now != LEFT else -1] += 1

    def _who_removes(self, index: int, spec: RequestSpec) -> int:
        hosts = self._hosts
        for number, each in self._asked:
            admits = getattr(each, "admits", None)
            if admits is not None:
                is_left = admits(hosts, spec, index)
            else:
                is_left = _there(each, each.mask(hosts, spec, slice(index, index + 1)))[0]
            if not is_left:
                return number
        return LEFT

    def _judge(self, spec: RequestSpec, rows: Rows) -> Codes:
        masks = [_there(each, each.mask(self._hosts, spec, rows)) for _, each in self._asked]
        return self._codes(masks, rows)

    def _codes(self, masks: Sequence[Mask], rows: Rows) -> Codes:
        """For each row the number of the first filter that removed it, or ``LEFT``."""
        count = self._hosts.row_count if isinstance(rows, slice) else rows.shape[0]
        codes: Codes = np.full(count, LEFT, dtype=np.uint8)
        # From the last to the first, so that the first has the last word.
        for (number, _), mask in zip(reversed(self._asked), reversed(masks), strict=True):
            assert mask.shape == codes.shape
            if not mask.all():
                codes[~mask] = number
        return codes

    def _weigh(self, spec: RequestSpec, rows: Rows, codes: Codes) -> Weights:
        given = add_up(self.weighers, self._hosts, spec, rows)
        if given is None:
            given = np.zeros(codes.shape[0])
        # Not the columns themselves: what is remembered is written to. What is no number, a
        # weigher of somebody's own has made; it must not make hosts vanish.
        return np.where(codes == LEFT, numbers(given), GONE)

    def _count(self) -> None:
        found = np.bincount(self.removed_by, minlength=LEFT + 1).tolist()
        self.counts = [*found[: len(self.pipeline.steady_filters)], found[LEFT]]


def _there(each: Filter, mask: Mask | None) -> Mask:
    if mask is None:
        why = "mask gave None for some rows, and an array for all rows of a request alike"
        raise PluginFailed("host filter", each.NAME, why)
    return mask


class Memories:
    """The memories of one pipeline, those that were used last."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._known: dict[object, Memory] = {}
        self._hosts: HostTable | None = None

    def recall(self, hosts: HostTable, spec: RequestSpec) -> Memory:
        """What a request's shape comes to on this table, as it is now."""
        if hosts is not self._hosts:
            # Of a table that was read anew nothing is remembered, and the old one may go.
            self._known.clear()
            self._hosts = hosts
        shape = self.pipeline.shape(spec)
        # Taken out until it is renewed: one that fails half way is not kept.
        memory = self._known.pop(shape, None)
        if memory is None or not memory.is_whole:
            if len(self._known) >= SHAPES_MAX:
                # The first is the one that was used least lately: each use puts one at the end.
                del self._known[next(iter(self._known))]
            memory = Memory(self.pipeline, hosts, spec)
        else:
            memory.renew(hosts, spec)
        self._known[shape] = memory
        return memory
