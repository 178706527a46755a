"""Plug-ins as operators write them: filters, weighers and drivers of the right shape."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling.memory import Memories
from innkeeper.scheduling.pipeline import Pipeline, Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.scheduling.schedulers.picking import pick_all
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable


class EvenHosts:
    """An operator's filter: hosts in even rows."""

    NAME = "EvenHostsFilter"
    REASON = "the host is odd"
    READS: Reads = ()

    @staticmethod
    def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
        even: Mask = (np.arange(hosts.host_count) % 2 == 0)[rows]
        return even

    @staticmethod
    def missing(hosts: HostTable, spec: RequestSpec) -> str:
        return "even hosts only"


class LateHosts:
    """An operator's weigher: later rows are better."""

    NAME = "LateHostsWeigher"
    READS: Reads = ()
    AGGREGATE_KEY = "late_hosts_weight_multiplier"

    @staticmethod
    def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
        return np.arange(hosts.host_count, dtype=np.float64)[rows]

    @staticmethod
    def scale(hosts: HostTable, spec: RequestSpec) -> float:
        return float(max(1, hosts.host_count))


class OneOnly:
    """An operator's driver: it places one server and no more."""

    NAME = "one_only"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        self.pipeline = pipeline
        self._choice = choice
        self._memories = Memories(pipeline)

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        made = pick_all(self._memories, hosts, spec, self._choice)
        for entry in made.entries[1:]:
            hosts.give_back(entry.index, spec.amounts)
        return BuildPlan(made.entries[:1], made.seen, made.hosts, made.candidates, made.removals)


class Halved:
    """An unfinished filter."""

    NAME = "HalvedFilter"
    REASON = "it is not finished"


class Obstinate(OneOnly):
    """A driver that does not accept the standard arguments."""

    def __init__(self) -> None:
        raise AssertionError
