"""A driver that draws within availability zones.

Source: the seed *Distributed Scheduler*, "selects Compute hosts from a logical partitioning of
available hosts". Where no zone is asked for, the servers of a request are dealt over all zones
that have hosts for them, as evenly as goes.

Does not promise that all at once comes out as one by one: a request that comes later does not
know to which zones an earlier one was dealt.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from innkeeper.domain.placing import BuildPlan, Entry, RequestSpec
from innkeeper.scheduling.filters import availability_zone
from innkeeper.scheduling.memory import Memories
from innkeeper.scheduling.pipeline import Pipeline, Weights
from innkeeper.scheduling.schedulers.picking import pick_all
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.snapshot.columns import HostTable


class AvailabilityZone:
    """See :class:`innkeeper.scheduling.schedulers.scheduler.Scheduler`."""

    NAME = "availability_zone"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        filters = dict.fromkeys((*pipeline.filters, availability_zone))
        self.pipeline = Pipeline(tuple(filters), ())
        self._choice = choice
        self._memories = Memories(self.pipeline)

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """Any host of the zone asked for, or of the zones in turn."""
        return pick_all(self._memories, hosts, spec, self._choice, _in_turn)


def _in_turn(hosts: HostTable, spec: RequestSpec, entries: Sequence[Entry]) -> Weights | None:
    """Less for a host, the more servers of this request its zone has."""
    if spec.availability_zone is not None or not entries:
        return None
    picked = hosts.zone_codes[[entry.index for entry in entries]]
    by_zone: Weights = np.bincount(picked, minlength=len(hosts.zones)).astype(np.float64)
    return -by_zone[hosts.zone_codes]
