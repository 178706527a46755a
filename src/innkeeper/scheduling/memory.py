"""Cache the results of steady filters and weighers, by the shape of the request.

Steady filters and weighers are those whose results can be cached. The shape consists of all values
in a request that these filters and weighers read. Most requests have one of a few shapes. Only rows
that were edited since the last use are evaluated again.

Always true after :meth:`Memories.recall`: the cached results are equal, bit for bit, to the results
that the pipeline would compute now. This applies to the weights and to the filter that removed each
host. ``counts`` match the removed hosts.
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
"""The code in ``removed_by`` for a host that no filter removed."""
SHAPES_MAX = 32
"""The maximum number of shapes of requests with cached results. The results of a shape take a
megabyte of memory for 100,000 hosts."""
ALONE_MAX = 2
"""The maximum number of edited rows that are evaluated one by one. For more, arrays are faster."""


class Memory:
    """The cached results for requests of one shape, on one table.

    Requests of one shape are equal in all fields that steady filters and weighers read. Steady
    filters and weighers are those whose results can be cached. ``weights`` has ``GONE`` for removed
    hosts. Callers must not change this array. ``removed_by`` has the number of the first filter
    that removed each row, or ``LEFT``. ``counts[i]`` is the number of hosts that steady filter *i*
    removed. The last element of ``counts`` is the number of hosts that no filter removed.
    ``weighers`` are the steady weighers that apply to the shape. ``is_whole`` is False if the last
    update failed, perhaps in a plugin.
    """

    def __init__(self, pipeline: Pipeline, hosts: HostTable, spec: RequestSpec) -> None:
        self.pipeline = pipeline
        self._hosts = hosts
        self._rules = spec.rules
        self._place = 0
        self._pool_place = 0
        self.is_whole = True
        self._look_at_all(spec)

    weights: Weights
    removed_by: Codes
    counts: list[int]
    _fitting: dict[str, Mask]
    weighers: tuple[Active, ...]

    @property
    def left(self) -> int:
        """The number of hosts that passed all filters with cached results."""
        return self.counts[-1]

    def taken(self) -> Taken:
        """Return the filters that removed hosts, each with the number of removed hosts."""
        numbered = zip(self.pipeline.steady_filters, self.counts, strict=False)
        return [(each, count) for each, count in numbered if count]

    def renew(self, hosts: HostTable, spec: RequestSpec) -> None:
        """Update the results for a request of the same shape to the present state of the table."""
        is_other = hosts is not self._hosts or spec.rules != self._rules
        if is_other or self._ground != self._ground_now(hosts, spec):
            self._hosts = hosts
            self._look_at_all(spec)
        else:
            self.look_again(spec)

    def _ground_now(self, hosts: HostTable, spec: RequestSpec) -> Ground:
        """Return a key. If the key changes, all rows must be evaluated again."""
        stamps = [each.stamp(hosts, spec) for each in self._stamped]
        scales = [each.scale(hosts, spec) for each, _ in self.pipeline.steady_weighers]
        known = (len(hosts.traits), len(hosts.free), hosts.aggregates.version)
        return (hosts.epoch, hosts.pools.epoch, known, stamps, scales)

    def look_again(self, spec: RequestSpec) -> None:
        """Update the hosts that were edited, or whose pools were edited, since the last update."""
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
        """Evaluate these rows, and all hosts that a changed pool serves.

        A changed pool affects the weights of the hosts that it serves, but seldom the results of
        filters. Filters are therefore applied to these hosts only if necessary.
        """
        hosts = self._hosts
        edited = set(hosts.pools.edits[self._pool_place :])
        self._pool_place = len(hosts.pools.edits)
        concerned = hosts.served_by(edited)
        at = np.fromiter(rows, dtype=np.intp, count=len(rows))
        concerned[at] = True
        affected = ALL_ROWS if concerned.all() else concerned.nonzero()[0]
        has_changed = self._update_fitting(edited, spec)
        self._judge_again(affected if has_changed else at, spec)
        self._weigh_again(affected, spec)

    def _fitting_now(self, spec: RequestSpec) -> dict[str, Mask]:
        """Return, for each class that pools lend, whether each pool can supply the amount.

        Filters may read nothing else about pools.
        """
        pools = self._hosts.pools
        return {
            name: pools.fits(name, amount, ALL_ROWS)
            for name, amount in spec.amounts.items()
            if pools.have(name)
        }

    def _update_fitting(self, edited: Collection[int], spec: RequestSpec) -> bool:
        """Update the masks of fitting pools. Return whether they changed."""
        pools, rows = self._hosts.pools, np.fromiter(edited, dtype=np.intp, count=len(edited))
        has_changed = False
        for name, known in self._fitting.items():
            fits = pools.fits(name, spec.amounts[name], rows)
            if (fits != known[rows]).any():
                known[rows] = fits
                has_changed = True
        return has_changed

    def _judge_again(self, rows: Rows, spec: RequestSpec) -> None:
        before, codes = self.removed_by[rows], self._judge(spec, rows)
        differs = before != codes
        for was, now in zip(before[differs].tolist(), codes[differs].tolist(), strict=True):
            self._recount(was, now)
        self.removed_by[rows] = codes

    def _weigh_again(self, rows: Rows, spec: RequestSpec) -> None:
        self.weights[rows] = self._weigh(spec, rows, self.removed_by[rows])

    def follow(self, spec: RequestSpec) -> None:
        """Update the results after a pick. The pick changed the rows of a host and of its pools."""
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
        self._fitting = self._fitting_now(spec)
        self._filters = tuple(enumerate(pipeline.steady_filters))
        self.weighers = active(pipeline.steady_weighers, hosts, spec)
        singles: list[Any] = [getattr(each, "number", None) for each, *_ in self.weighers]
        factors = [factor for _, factor, _ in self.weighers]
        self._singles = None if None in singles else list(zip(singles, factors, strict=True))
        masks = [each.mask(hosts, spec, ALL_ROWS) for _, each in self._filters]
        # Filters that do not apply to this shape are skipped until all rows are evaluated again.
        pairs = zip(self._filters, masks, strict=True)
        self._filters = tuple(numbered for numbered, mask in pairs if mask is not None)
        used = [*(each for _, each in self._filters), *(each for each, *_ in self.weighers)]
        self._stamped: list[Any] = [each for each in used if hasattr(each, "stamp")]
        # If a weigher has a stamp, a pick may change the weights of other hosts.
        self._is_moved = any(hasattr(each, "stamp") for each, *_ in self.weighers)
        self._ground = self._ground_now(hosts, spec)
        self.removed_by = self._codes([mask for mask in masks if mask is not None], ALL_ROWS)
        self.weights = self._weigh(spec, ALL_ROWS, self.removed_by)
        self._count()

    def _look_at(self, index: int, spec: RequestSpec) -> None:
        """Evaluate one row, if possible without arrays of one element, which are slower."""
        code = self._removing_filter(index, spec)
        self._recount(int(self.removed_by[index]), code)
        self.removed_by[index] = code
        if code != LEFT:
            self.weights[index] = GONE
            return
        weight = self._weight(index, spec)
        self.weights[index] = weight if math.isfinite(weight) else 0.0

    def _weight(self, index: int, spec: RequestSpec) -> float:
        """Return the weight of one row, bit for bit the same as if computed with arrays."""
        if self._singles is None or self._hosts.has_aggregates:
            given = add_up(self.weighers, self._hosts, spec, slice(index, index + 1))
            return 0.0 if given is None else float(given[0])
        # The order is the same as in ``add_up``. ``sum`` is not used, because its rounding differs
        # since Python 3.12.
        total = 0.0
        for number, factor in self._singles:
            total += number(self._hosts, spec, index) * factor
        return total

    def _recount(self, was: int, now: int) -> None:
        if was != now:
            self.counts[was if was != LEFT else -1] -= 1
            self.counts[now if now != LEFT else -1] += 1

    def _removing_filter(self, index: int, spec: RequestSpec) -> int:
        hosts = self._hosts
        for number, each in self._filters:
            admits = getattr(each, "admits", None)
            if admits is not None:
                is_left = admits(hosts, spec, index)
            else:
                is_left = _there(each, each.mask(hosts, spec, slice(index, index + 1)))[0]
            if not is_left:
                return number
        return LEFT

    def _judge(self, spec: RequestSpec, rows: Rows) -> Codes:
        masks = [_there(each, each.mask(self._hosts, spec, rows)) for _, each in self._filters]
        return self._codes(masks, rows)

    def _codes(self, masks: Sequence[Mask], rows: Rows) -> Codes:
        """For each row, return the number of the first filter that removed the row, or ``LEFT``."""
        count = self._hosts.row_count if isinstance(rows, slice) else rows.shape[0]
        codes: Codes = np.full(count, LEFT, dtype=np.uint8)
        # The order is reversed, so that the first filter overwrites the later ones.
        for (number, _), mask in zip(reversed(self._filters), reversed(masks), strict=True):
            assert mask.shape == codes.shape
            if not mask.all():
                codes[~mask] = number
        return codes

    def _weigh(self, spec: RequestSpec, rows: Rows, codes: Codes) -> Weights:
        given = add_up(self.weighers, self._hosts, spec, rows)
        if given is None:
            given = np.zeros(codes.shape[0])
        # The result must be a copy, because cached weights are edited. A weight from a plugin that
        # is NaN or infinite must not remove the host.
        return np.where(codes == LEFT, numbers(given), GONE)

    def _count(self) -> None:
        found = np.bincount(self.removed_by, minlength=LEFT + 1).tolist()
        self.counts = [*found[: len(self.pipeline.steady_filters)], found[LEFT]]


def _there(each: Filter, mask: Mask | None) -> Mask:
    if mask is None:
        why = "mask returned None for some rows, but an array for all rows of the same request"
        raise PluginFailed("host filter", each.NAME, why)
    return mask


class Memories:
    """The cached results of one pipeline by shape. The least recently used are evicted first."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._known: dict[object, Memory] = {}
        self._hosts: HostTable | None = None

    def recall(self, hosts: HostTable, spec: RequestSpec) -> Memory:
        """Return the cached results for requests of this shape, updated to the present table."""
        if hosts is not self._hosts:
            # There are no results for a new table. The old table can be freed.
            self._known.clear()
            self._hosts = hosts
        shape = self.pipeline.shape(spec)
        # The memory is not in the cache during its update, so that a failed update is not cached.
        memory = self._known.pop(shape, None)
        if memory is None or not memory.is_whole:
            if len(self._known) >= SHAPES_MAX:
                # Each use moves a memory to the end, so the first memory is the least recently
                # used.
                del self._known[next(iter(self._known))]
            memory = Memory(self.pipeline, hosts, spec)
        else:
            memory.renew(hosts, spec)
        self._known[shape] = memory
        return memory
