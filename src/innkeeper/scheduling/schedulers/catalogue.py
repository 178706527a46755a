"""Lists the drivers by name. To add a driver, write a class like these, and add a line here.

Source: the design *Distributed Scheduler*.

Always true, except for the driver ``availability_zone``: servers that are requested together get
the same hosts as servers that are requested one by one, with a commit after each request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from innkeeper.domain.placing import BuildPlan, Entry, RequestSpec
from innkeeper.scheduling.filters import availability_zone
from innkeeper.scheduling.pipeline import Pipeline, Weights
from innkeeper.scheduling.schedulers.picking import PickingScheduler, pick_all
from innkeeper.scheduling.schedulers.scheduler import Choice, Scheduler
from innkeeper.scheduling.weighers import least_loaded
from innkeeper.snapshot.columns import HostTable


class AllAtOnce(PickingScheduler):
    """The default driver: filter and weigh hosts, and place all servers of a request together.

    Source: "Single-Shot vs. All-at-Once".
    """

    NAME = "all_at_once"


class Chance(PickingScheduler):
    """Pick a random host. All hosts that pass the filters are equally likely.

    Source: "randomly selects a Host from the available pool".
    """

    NAME = "chance"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        super().__init__(Pipeline(pipeline.filters, ()), choice)


class Simple(PickingScheduler):
    """Pick the least loaded host, which is the host with the fewest allocated vcpus."""

    NAME = "simple"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        super().__init__(Pipeline(pipeline.filters, ((least_loaded, 1.0),)), choice)


class AvailabilityZone(PickingScheduler):
    """Pick a random host of the requested zone, or of each zone in turn.

    Source: "selects Compute hosts from a logical partitioning of available hosts". Without a
    requested zone, the servers of a request are spread evenly over all zones with usable hosts. A
    request does not know the zones that earlier requests used.
    """

    NAME = "availability_zone"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        filters = dict.fromkeys((*pipeline.filters, availability_zone))
        super().__init__(Pipeline(tuple(filters), ()), choice)

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """Choose a host for each server; see :class:`Scheduler`."""
        return pick_all(self._memories, hosts, spec, self._choice, _zones_in_turn)


def _zones_in_turn(hosts: HostTable, spec: RequestSpec, entries: Sequence[Entry]) -> Weights | None:
    """For each host, return the negated number of this request's servers in the host's zone."""
    if spec.availability_zone is not None or not entries:
        return None
    picked = hosts.zone_codes[[entry.index for entry in entries]]
    by_zone: Weights = np.bincount(picked, minlength=len(hosts.zones)).astype(np.float64)
    return -by_zone[hosts.zone_codes]


SCHEDULERS: Mapping[str, type[Scheduler]] = {
    AllAtOnce.NAME: AllAtOnce,
    Chance.NAME: Chance,
    AvailabilityZone.NAME: AvailabilityZone,
    Simple.NAME: Simple,
}
