"""Compute the weights of hosts for one request, and update the weights after each pick.

Some filters and weighers have results that :mod:`innkeeper.scheduling.memory` caches. The others
are evaluated per request. The weights combine both. If a filter leaves few rows, such as the hosts
of a named pcloud, the field contains only these rows. This makes the evaluation per request cheap.

Always true: :attr:`Field.weights` match the present table after every pick that was reported to
:meth:`Field.took`. Hosts that a filter removed have the weight ``GONE``.

A *place* is an index into the weights. Places are in the order of rows, so that a draw among equal
hosts has the same result in a small field as in a field with all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
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
    """The weights of hosts for one request, updated after each pick."""

    def __init__(
        self, memories: Memories, hosts: HostTable, spec: RequestSpec, rows: Rows = ALL_ROWS
    ) -> None:
        pipeline = memories.pipeline
        self._hosts = hosts
        self._memory = memories.recall(hosts, spec)
        self.spec = spec
        self.rows: Rows = rows
        """The rows of the table that :attr:`weights` contains."""
        self.taken: Taken = self._memory.taken()
        self.candidates = self._memory.left
        self.steady, self.steady_left = list(self.taken), self.candidates
        """The numbers of hosts that each filter with cached results removed, and the number that
        remained."""
        self._allowed: Mask | None = None
        """The combined mask of the per-request filters whose results do not change after a pick."""
        self._moving: list[Filter] = []
        allowed = self._apply_rare(pipeline)
        self._weighers = active(pipeline.rare_weighers, hosts, spec)
        self.weights: Weights = self._weights(allowed)

    def _apply_rare(self, pipeline: Pipeline) -> Mask | None:
        """Apply all per-request filters. Return the combined mask, or None if none applies."""
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
            # A filter that does not apply now will not apply after a pick either, unless it reads
            # the group. It may then apply after the first member.
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
        """Record how many hosts a filter removed. ``left`` is the mask of the remaining hosts."""
        after = int(np.count_nonzero(left))
        if after < self.candidates:
            self.taken.append((each, self.candidates - after))
        self.candidates = after

    def row(self, place: int) -> HostIndex:
        """Return the row of the table for an index into :attr:`weights`."""
        return HostIndex(place if isinstance(self.rows, slice) else int(self.rows[place]))

    def took(self, index: HostIndex, host: str) -> None:
        """Update the weights after the host ``index`` was picked.

        The amounts of the pick must already be taken from the table.
        """
        group = self.spec.group
        if group is not None:
            members = {**group.members, host: group.members.get(host, 0) + 1}
            grown = replace(group, members=members)
            self.spec = msgspec.structs.replace(self.spec, group=grown)
        self._memory.follow(self.spec)
        masks = [each.mask(self._hosts, self.spec, self.rows) for each in self._moving]
        self.weights = self._weights(_both(self._allowed, masks))

    def parts(self, index: HostIndex) -> Mapping[str, float]:
        """Return each weigher's part of the present weight of one host."""
        weighers = (*self._memory.weighers, *self._weighers)
        return parts_by(weighers, self._hosts, self.spec, index)

    def _weights(self, allowed: Mask | None) -> Weights:
        """Combine the cached weights with the per-request filters and weighers."""
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
