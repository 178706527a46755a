"""Measures the cost of recording, with each server, why it was placed on its host.

Boots are decided and committed in groups inside this process, as the writer thread does it. Each
group has one commit. The groups have the full record (``full``), the default record (``brief``) or
no record (``off``). The kinds take turns on one database, so that its growth and other load of the
machine affect all kinds equally.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import get_args

from benchmarks.figures import Figure, median
from benchmarks.fleet import FLAVOR_ID, Fleet
from benchmarks.running import filled, store_in
from innkeeper import wiring
from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.ids import ServerId
from innkeeper.domain.slices import Computing, DecisionDetail, Scheduling
from innkeeper.engine.batches import PendingCommand, carry_out
from innkeeper.engine.commands import Boot
from innkeeper.random_ids import RandomIds
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.boot.executor import BootExecutor

UNLIMITED = -1
A_DAY_S = 86_400.0
KINDS: tuple[DecisionDetail, ...] = get_args(DecisionDetail)
WARM_UPS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how many rounds to measure, and how many boots of each kind in a round."""

    hosts: int
    rounds: int
    group: int = 16


def measure(directory: Path, plan: Plan) -> Iterator[Figure]:
    """Measure the rates of boots with each kind of record, and the cost of the records."""
    filled(directory, Fleet(plan.hosts, allocations=9 * plan.hosts))
    store = store_in(directory)
    try:
        took = _took(store, plan)
    finally:
        store.dispose()
    whole_s = {kind: median([whole for whole, _ in took[kind]]) for kind in KINDS}
    for kind in KINDS:
        name = f"explanations.{plan.hosts}.{kind}"
        busy_s = median([busy for _, busy in took[kind]])
        yield Figure(f"{name}.rate", plan.group / whole_s[kind], "boots/s", is_rate=True)
        yield Figure(f"{name}.busy", busy_s / plan.group * 1e6, "us")
        if kind != "off":
            yield Figure(f"{name}.share", whole_s[kind] / whole_s["off"], "of off")


def _took(store: Store, plan: Plan) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds and the processor seconds of each group, by kind.

    On a disk that flushes slowly, the elapsed time hardly shows differences in processor time. So
    both are returned.
    """
    executors = {kind: _executor(store, kind) for kind in KINDS}
    dice = random.Random(1)
    took: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for turn in range(WARM_UPS + plan.rounds):
        for kind in dice.sample(KINDS, len(KINDS)):
            executor = executors[kind]
            # The first boot reads what the other kinds have written, so it is not measured.
            carry_out(store, executor, [_step(dice)])
            steps = [_step(dice) for _ in range(plan.group)]
            started_s, busy_since_s = time.perf_counter(), time.thread_time()
            answers = carry_out(store, executor, steps)
            took_s = time.perf_counter() - started_s, time.thread_time() - busy_since_s
            assert all(isinstance(each, Booted) and each.fault is None for each in answers)
            if turn >= WARM_UPS:
                took[kind].append(took_s)
    return took


def _executor(store: Store, kind: DecisionDetail) -> BootExecutor:
    computing = Computing(
        quota_instances=UNLIMITED,
        quota_cores=UNLIMITED,
        quota_ram=UNLIMITED,
        service_down_time_s=A_DAY_S,
    )
    executor = BootExecutor(Scheduling(explain_decisions=kind), computing)
    with store.read() as tx:
        executor.load(tx)
    return executor


def _step(dice: random.Random) -> PendingCommand:
    return PendingCommand(Boot(_request(dice, wiring.now())))


def _request(dice: random.Random, now: datetime) -> BootRequest:
    server_id = ServerId(RandomIds().uuid())
    return BootRequest(
        project_id="mine",
        user_id="me",
        request_id=f"req-{server_id}",
        name="server",
        flavor_id=FLAVOR_ID,
        server_ids=(server_id,),
        batch_id=f"r-{server_id}",
        seed=dice.getrandbits(63),
        now=now,
    )
