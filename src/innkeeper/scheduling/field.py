"""All hosts as one request sees them: what is remembered of its shape, and what is its own.

Always true: :attr:`Field.weights` are those of the table as it is now, after every pick that
:meth:`Field.took` was told of; a host that a filter removed has ``GONE``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import GroupRule, RequestSpec
from innkeeper.scheduling.memory import GONE, Memories
from innkeeper.scheduling.pipeline import (
    ALL_ROWS,
    Filter,
    Taken,
    Weights,
    active,
    add_up,
    numbers,
    parts_by,
)
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.columns import HostTable


class Field:
    """The weights of one request's hosts, through its picks."""

    def __init__(self, memories: Memories, hosts: HostTable, spec: RequestSpec) -> None:
        pipeline = memories.pipeline
        self._hosts = hosts
        self._memory = memories.recall(hosts, spec)
        self.spec = spec
        # In this order, so that it can be told who removed how many.
        asked = [(e, e.mask(hosts, spec, ALL_ROWS)) for e in pipeline.rare_filters]
        moving = set(map(id, pipeline.moving_filters))
        self._allowed = _both(None, [mask for each, mask in asked if id(each) not in moving])
        # Who has nothing to say of this request at first has nothing to say later, except of a
        # group that gets its first member.
        is_grouped = spec.group is not None
        self._moving = [
            each
            for each, mask in asked
            if id(each) in moving
            and (mask is not None or (is_grouped and "group" in each.READS))
        ]
        self._weighers = active(pipeline.rare_weighers, hosts, spec)
        self.taken: Taken = self._memory.taken()
        self.candidates = self._memory.left
        self._count(asked)
        self.weights: Weights = self._weights(_both(None, [mask for _, mask in asked]))

    def took(self, index: HostIndex, host: str) -> None:
        """Note a pick, which is off the table already."""
        group = self.spec.group
        if group is not None:
            members = {**group.members, host: group.members.get(host, 0) + 1}
            rule = GroupRule(group.policy, members, group.servers_per_host_max)
            self.spec = replace(self.spec, group=rule)
        self._memory.follow(self.spec)
        self.weights = self._weights(_both(self._allowed, self._masks(self._moving)))

    def parts(self, index: HostIndex) -> Mapping[str, float]:
        """What each weigher gives to one host now."""
        weighers = (*self._memory.weighers, *self._weighers)
        return parts_by(weighers, self._hosts, self.spec, index)

    def _masks(self, filters: Sequence[Filter]) -> list[Mask | None]:
        return [each.mask(self._hosts, self.spec, ALL_ROWS) for each in filters]

    def _weights(self, allowed: Mask | None) -> Weights:
        """Work the weights out from what is remembered and what is this request's own."""
        weights = self._memory.weights
        if allowed is not None:
            weights = np.where(allowed, weights, GONE)
        if self._weighers:
            more = add_up(self._weighers, self._hosts, self.spec, ALL_ROWS)
            weights = weights if more is None else weights + numbers(more)
        return weights

    def _count(self, asked: Sequence[tuple[Filter, Mask | None]]) -> None:
        """Note how many hosts these filters remove, before the first pick."""
        left: Mask | None = None
        for each, mask in asked:
            if mask is None:
                continue
            if left is None:
                left = self._memory.weights > GONE
            left &= mask
            after = int(np.count_nonzero(left))
            if after < self.candidates:
                self.taken.append((each, self.candidates - after))
            self.candidates = after


def _both(allowed: Mask | None, masks: Sequence[Mask | None]) -> Mask | None:
    for mask in masks:
        if mask is not None:
            allowed = mask if allowed is None else allowed & mask
    return allowed
