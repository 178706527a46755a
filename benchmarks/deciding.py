"""Measures the cost of one decision inside the process, without database and HTTP.

The measured function is the one that the service calls: a driver's ``plan`` with the pipeline of
the default settings, on columns of a synthetic fleet. Every decision takes its amounts from the
table, so the next decision finds less capacity.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.figures import Figure, median, percentile
from benchmarks.fleet import AGENT_ID, CLASSES, RATIOS, Fleet, host_name
from innkeeper.domain.ids import AgentId, ProviderId
from innkeeper.domain.placing import RequestSpec
from innkeeper.domain.slices import Scheduling
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.compute.boot.drivers import scheduler_of

NOW_S = 1_800_000_000.0
SILENCE_MAX_S = 60.0
REQUESTS = ((1, 1_024, 10), (2, 4_096, 20), (4, 8_192, 40), (8, 16_384, 80))
WARM_UPS = 50
TOGETHER = 1_000


class Case(NamedTuple):
    """A case to measure: a number of hosts, with disks of their own or from pools."""

    hosts: int
    pools: int = 0

    @property
    def name(self) -> str:
        """The prefix of its figures' names."""
        pooled = f".pools_{self.pools}" if self.pools else ""
        return f"decision.{self.hosts}{pooled}"

    @property
    def label(self) -> str:
        """Its label in a table."""
        pooled = f", disks in {self.pools} pools" if self.pools else ""
        return f"{self.hosts:,}{pooled}"


POOLED = Case(10_000, pools=20)


def cases(host_counts: Sequence[int]) -> list[Case]:
    """Return a case per number of hosts with their own disks, and a case with disks in pools."""
    return [*map(Case, host_counts), POOLED]


def measure(host_counts: Sequence[int], decisions: int, repetitions: int) -> Iterator[Figure]:
    """Measure single decisions (median and 99th percentile), and one request for 1,000 servers."""
    for case in cases(host_counts):
        singles: list[float] = []
        passes: list[float] = []
        together: list[float] = []
        for repetition in range(repetitions):
            table = table_of(Fleet(case.hosts, allocations=9 * case.hosts))
            if case.pools:
                _move_disks(table, case.pools)
            dice = random.Random(repetition)
            singles += _singles(table, dice, decisions)
            if not case.pools:
                passes += [_plain_pass(table, spec_of(dice, 1)) for _ in range(decisions)]
            together.append(once(table, spec_of(dice, TOGETHER)))
        yield Figure(f"{case.name}.median", median(singles) * 1e6, "us")
        yield Figure(f"{case.name}.p99", percentile(singles, 99) * 1e6, "us")
        if passes:
            yield Figure(f"{case.name}.plain.median", median(passes) * 1e6, "us")
        yield Figure(f"{case.name}.of_1000", median(together) * 1e3, "ms")


def table_of(fleet: Fleet) -> HostTable:
    """Return the fleet's host table, built without a database."""
    table = HostTable()
    for name in CLASSES:
        table.ensure_class(name)
    table.ensure_rows((ProviderId(i + 1), host_name(i)) for i in range(fleet.hosts))
    table.zone_code("nova")
    table.set_heartbeat(AgentId(AGENT_ID), NOW_S)
    table.is_open[:] = True
    capacity = np.array(fleet.shapes(), dtype=np.float64)
    used = np.zeros_like(capacity)
    for host, amounts in fleet.holdings():
        used[host] += amounts
    for column, (name, ratio) in enumerate(zip(CLASSES, RATIOS, strict=True)):
        table.used[name][:] = used[:, column]
        table.free[name][:] = capacity[:, column] * ratio - used[:, column]
        ones = np.ones(table.host_count)
        table.set_units(name, slice(None), (ones, capacity[:, column], ones))
    return table


def _move_disks(table: HostTable, pool_count: int) -> None:
    """Move the hosts' disks into pools. Each host uses one of the pools."""
    each_gb = np.full(pool_count, table.free["DISK_GB"].sum() // pool_count)
    for column in (table.free, table.used):
        column["DISK_GB"][:] = 0.0
    table.set_units("DISK_GB", slice(None), (0.0, 0.0, 0.0))
    pools = table.pools
    pools.add_rows(ProviderId(table.host_count + 1 + number) for number in range(pool_count))
    pools.ensure_class("DISK_GB")
    pools.set_capacity("DISK_GB", slice(None), each_gb)
    pools.set_units("DISK_GB", slice(None), (1.0, each_gb, 1.0))
    racks = [frozenset({f"rack-{number}"}) for number in range(pool_count)]
    pools.aggregates[:] = racks
    table.membership_codes[:] = [
        pools.code(racks[index % pool_count]) for index in range(table.host_count)
    ]
    table.knows_memberships = True


def _singles(table: HostTable, dice: random.Random, decisions: int) -> list[float]:
    for _ in range(WARM_UPS):
        once(table, spec_of(dice, 1))
    return [once(table, spec_of(dice, 1)) for _ in range(decisions)]


def spec_of(dice: random.Random, count: int) -> RequestSpec:
    """Return a request for this many servers of a random size."""
    amounts = dict(zip(CLASSES, REQUESTS[dice.randrange(len(REQUESTS))], strict=True))
    return RequestSpec(
        amounts=amounts,
        project_id="mine",
        user_id="me",
        now_s=NOW_S,
        silence_max_s=SILENCE_MAX_S,
        seed=dice.getrandbits(63),
        count=count,
    )


def _plain_pass(table: HostTable, spec: RequestSpec) -> float:
    """Return the seconds of one pass over the columns that computes the same mask and score.

    The pass is written in the simplest way, and picks the first of the best hosts.
    """
    amounts = list(spec.amounts.items())
    scales = [table.greatest(name) for name, _ in amounts]
    started = time.perf_counter()
    mask = table.is_open.copy()
    score = np.zeros(table.host_count)
    for (name, amount), scale in zip(amounts, scales, strict=True):
        free = table.free[name]
        mask &= free >= amount
        score += free / scale
    score[~mask] = -np.inf
    best = int(score.argmax())
    took = time.perf_counter() - started
    assert mask[best]
    return took


_SCHEDULER = scheduler_of(Scheduling())


def once(table: HostTable, spec: RequestSpec) -> float:
    """Return the seconds that one decision takes."""
    started = time.perf_counter()
    made = _SCHEDULER.plan(table, spec)
    took = time.perf_counter() - started
    assert len(made.entries) == spec.count, "the fleet has room for all of them"
    return took
