"""What one decision costs inside the process, without database and HTTP.

The same function the service calls (``all_at_once.plan`` with the pipeline of the default
settings), on columns of a made-up fleet. Every decision depletes the table for the next.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.figures import Figure, median, percentile
from benchmarks.fleet import AGENT_ID, CLASSES, RATIOS, Fleet, host_name
from innkeeper.domain.ids import AgentId, ProviderId
from innkeeper.domain.placing import RequestSpec
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling.schedulers import all_at_once
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.compute.desk import pipeline_of

NOW_S = 1_800_000_000.0
SILENCE_MAX_S = 60.0
REQUESTS = ((1, 1_024, 10), (2, 4_096, 20), (4, 8_192, 40), (8, 16_384, 80))
WARM_UPS = 50
TOGETHER = 1_000
SUBSET_SIZE = Scheduling().host_subset_size


def measure(host_counts: Sequence[int], decisions: int, repetitions: int) -> Iterator[Figure]:
    """Median and 99th percentile of single decisions, and of one request of 1,000 servers."""
    for count in host_counts:
        singles: list[float] = []
        together: list[float] = []
        for repetition in range(repetitions):
            table = table_of(Fleet(count, allocations=9 * count))
            dice = random.Random(repetition)
            singles += _singles(table, dice, decisions)
            together.append(_once(table, _spec(dice, TOGETHER)))
        yield Figure(f"decision.{count}.median", median(singles) * 1e6, "us")
        yield Figure(f"decision.{count}.p99", percentile(singles, 99) * 1e6, "us")
        yield Figure(f"decision.{count}.of_1000", median(together) * 1e3, "ms")


def table_of(fleet: Fleet) -> HostTable:
    """The fleet's host table, made without a database."""
    table = HostTable()
    for name in CLASSES:
        table.ensure_class(name)
    table.ensure_rows((ProviderId(i + 1), host_name(i)) for i in range(fleet.hosts))
    table.zone_code("nova")
    # The code first: a new agent's lengthens the column.
    code = table.agent_code(AgentId(AGENT_ID))
    table.agent_seen_s[code] = NOW_S
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


def _singles(table: HostTable, dice: random.Random, decisions: int) -> list[float]:
    for _ in range(WARM_UPS):
        _once(table, _spec(dice, 1))
    return [_once(table, _spec(dice, 1)) for _ in range(decisions)]


def _spec(dice: random.Random, count: int) -> RequestSpec:
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


_PIPELINE = pipeline_of(Scheduling())


def _once(table: HostTable, spec: RequestSpec) -> float:
    started = time.perf_counter()
    made = all_at_once.plan(_PIPELINE, table, spec, SUBSET_SIZE)
    took = time.perf_counter() - started
    assert len(made.entries) == spec.count, "the fleet has room for all of them"
    return took
