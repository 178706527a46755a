"""All hosts as one request sees them: what is remembered of its shape, and what is its own.

Always true: :attr:`Field.weights` are those of the table as it is now, after every pick that
:meth:`Field.took` was told of; a host that a filter removed has ``GONE``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import GroupRule, RequestSpec
from innkeeper.scheduling.memory import GONE, Memories
from innkeeper.scheduling.pipeline import (
    ALL_ROWS,
    Filter,
    Taken,
    Weighed,
    Weights,
    narrow,
    weigh,
)
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.columns import HostTable

MOVING = frozenset({"group", "project_id", "query"})
"""Fields whose meaning moves with every pick: there is one server more of group and project,
and a query may ask for what is left."""


class Field:
    """The weights of one request's hosts, through its picks."""

    def __init__(self, memories: Memories, hosts: HostTable, spec: RequestSpec) -> None:
        pipeline = memories.pipeline
        self._hosts = hosts
        self._memory = memories.recall(hosts, spec)
        self.spec = spec
        self.taken: Taken = self._memory.taken()
        self.weights: Weights = self._memory.weights
        still = [each for each in pipeline.rare_filters if MOVING.isdisjoint(each.READS)]
        self._moving = [each for each in pipeline.rare_filters if each not in still]
        self._weighers: Sequence[Weighed] = pipeline.rare_weighers
        self._allowed: Mask | None = self._narrowed(still)
        self._is_own = False
        self._look()
        self.candidates = self._count_candidates()

    def took(self, index: HostIndex, host: str) -> None:
        """Note a pick, which is off the table already."""
        group = self.spec.group
        if group is not None:
            members = {**group.members, host: group.members.get(host, 0) + 1}
            rule = GroupRule(group.policy, members, group.servers_per_host_max)
            self.spec = replace(self.spec, group=rule)
        self._memory.follow(self.spec)
        self._look()

    def _look(self) -> None:
        """Work the weights out from what is remembered and what is this request's own."""
        weights = self._memory.weights
        allowed = self._allowed
        if self._moving:
            moving = [each.mask(self._hosts, self.spec, ALL_ROWS) for each in self._moving]
            for mask in moving:
                if mask is not None:
                    allowed = mask if allowed is None else allowed & mask
        more = weigh(self._weighers, self._hosts, self.spec, ALL_ROWS)
        if allowed is not None:
            weights = np.where(allowed, weights, GONE)
        if more is not None:
            weights = weights + more
        self.weights = weights

    def _narrowed(self, still: Sequence[Filter]) -> Mask | None:
        masks = [each.mask(self._hosts, self.spec, ALL_ROWS) for each in still]
        asked = [mask for mask in masks if mask is not None]
        return np.logical_and.reduce(asked) if asked else None

    def _count_candidates(self) -> int:
        """How many hosts passed all filters, before the first pick."""
        if self.weights is self._memory.weights:
            return self._memory.left
        left: Mask = self._memory.weights > GONE
        before = int(np.count_nonzero(left))
        if not before:
            return 0
        rare = [*self._memory.pipeline.rare_filters]
        narrow(rare, self._hosts, self.spec, left, self.taken)
        return int(np.count_nonzero(left))
