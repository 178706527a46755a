"""All hosts as one request sees them: what is remembered of its shape, and what is its own.

Where a filter leaves few rows, such as those of the pcloud that a request names, the field is
these rows alone, and what is its own costs next to nothing.

Always true: :attr:`Field.weights` are those of the table as it is now, after every pick that
:meth:`Field.took` was told of; a host that a filter removed has ``GONE``. Places in it have the
order of the rows, so that a draw among equals is the same in a field of few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.memory import GONE, Memories
from innkeeper.scheduling.pipeline import (
    ALL_ROWS,
    Filter,
    Pipeline,
    Taken,
    Weights,
    active,
    add_up,
    numbers,
    parts_by,
)
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable


class Field:
    """The weights of one request's hosts, through its picks."""

    def __init__(self, memories: Memories, hosts: HostTable, spec: RequestSpec) -> None:
        pipeline = memories.pipeline
        self._hosts = hosts
        self._memory = memories.recall(hosts, spec)
        self.spec = spec
        self.rows: Rows = ALL_ROWS
        """The rows that :attr:`weights` are of."""
        self.taken: Taken = self._memory.taken()
        self.candidates = self._memory.left
        self._allowed: Mask | None = None
        """What filters allow that say the same after every pick."""
        self._moving: list[Filter] = []
        allowed = self._ask(pipeline)
        self._weighers = active(pipeline.rare_weighers, hosts, spec)
        self.weights: Weights = self._weights(allowed)

    def _ask(self, pipeline: Pipeline) -> Mask | None:
        """Ask all rare filters, and note how many hosts each of them removes."""
        left: Mask | None = None
        allowed: Mask | None = None
        has_group = self.spec.group is not None
        for each, few, is_moving, reads_group in pipeline.rare:
            if few is not None and self.rows is ALL_ROWS:
                rows = few(self._hosts, self.spec)
                if rows is not None:
                    self.rows = rows
                    left = self._memory.weights[rows] > GONE
                    self._count(each, left)
                continue
            mask = each.mask(self._hosts, self.spec, self.rows)
            # Who has nothing to say of this request at first has nothing to say later, except
            # of a group that gets its first member.
            if is_moving and (mask is not None or (has_group and reads_group)):
                self._moving.append(each)
            if mask is None:
                continue
            if not is_moving:
                self._allowed = _both(self._allowed, [mask])
            allowed = _both(allowed, [mask])
            left = (self._memory.weights[self.rows] > GONE) if left is None else left
            left &= mask
            self._count(each, left)
        return allowed

    def _count(self, each: Filter, left: Mask) -> None:
        """Note how many hosts a filter removed, of which these are left."""
        after = int(np.count_nonzero(left))
        if after < self.candidates:
            self.taken.append((each, self.candidates - after))
        self.candidates = after

    def row(self, place: int) -> HostIndex:
        """The row that stands at a place of the weights."""
        return HostIndex(place if isinstance(self.rows, slice) else int(self.rows[place]))

    def took(self, index: HostIndex, host: str) -> None:
        """Note a pick, which is off the table already."""
        group = self.spec.group
        if group is not None:
            members = {**group.members, host: group.members.get(host, 0) + 1}
            self.spec = replace(self.spec, group=replace(group, members=members))
        self._memory.follow(self.spec)
        self.weights = self._weights(_both(self._allowed, self._masks(self._moving)))

    def parts(self, index: HostIndex) -> Mapping[str, float]:
        """What each weigher gives to one host now."""
        weighers = (*self._memory.weighers, *self._weighers)
        return parts_by(weighers, self._hosts, self.spec, index)

    def _masks(self, filters: Sequence[Filter]) -> list[Mask | None]:
        return [each.mask(self._hosts, self.spec, self.rows) for each in filters]

    def _weights(self, allowed: Mask | None) -> Weights:
        """Work the weights out from what is remembered and what is this request's own."""
        weights = self._memory.weights[self.rows]
        if allowed is not None:
            weights = np.where(allowed, weights, GONE)
        if self._weighers:
            more = add_up(self._weighers, self._hosts, self.spec, self.rows)
            weights = weights if more is None else weights + numbers(more)
        return weights


def _both(allowed: Mask | None, masks: Sequence[Mask | None]) -> Mask | None:
    for mask in masks:
        if mask is not None:
            allowed = mask if allowed is None else allowed & mask
    return allowed
