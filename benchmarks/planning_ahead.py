"""Measures the cost of a boot between two flushes, with and without a plan made ahead.

``python -m benchmarks.planning_ahead 10000`` fills a database with hosts, and boots batches of 16.
It measures the processor time of the writer thread per boot. Batches of both kinds take turns, and
the fastest batch of each kind counts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fleet import Fleet
from benchmarks.running import filled, store_in
from innkeeper import wiring
from innkeeper.domain.compute import BootRequest
from innkeeper.domain.ids import ServerId
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.random_ids import RandomIds
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.boot.executor import BootExecutor

SIZE = 16
TURNS = 150
FLUSHES_S = (0.0005, 0.002, 0.005, 0.010)
US = 1e6
UNLIMITED = Computing(quota_instances=-1, quota_cores=-1, quota_ram=-1)


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds of a batch: for planning ahead, and between two flushes."""

    ahead_s: float
    between_s: float


class Boots:
    """Boots batches of equal requests."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ids = RandomIds()
        self._executor = BootExecutor(Scheduling(), UNLIMITED)
        with store.read() as tx:
            self._executor.load(tx)

    def batch(self, *, is_ahead: bool) -> Cost:
        """Boot one batch, and return its cost. The time of the commit is not included."""
        requests = [self._request() for _ in range(SIZE)]
        started_s = time.thread_time()
        if is_ahead:
            assert all(map(self._executor.plan_ahead, requests))
        planned_s = time.thread_time()
        with self._store.write() as tx:
            self._executor.begin(tx)
            self._executor.boot(tx, requests)
            self._executor.follow(tx)
            done_s = time.thread_time()
        return Cost(planned_s - started_s, done_s - planned_s)

    def _request(self) -> BootRequest:
        server_id = ServerId(self._ids.uuid())
        seed = self._ids.seed()
        return BootRequest(
            "p", "u", "req-1", "n", "1", (server_id,), f"r-{seed:x}", seed, wiring.now()
        )


def main(hosts: int) -> None:
    """Measure, and print the results."""
    with tempfile.TemporaryDirectory() as folder:
        filled(Path(folder), Fleet(hosts, allocations=9 * hosts))
        store = store_in(Path(folder))
        boots = Boots(store)
        for _ in range(5):
            boots.batch(is_ahead=False)
        costs = [[boots.batch(is_ahead=kind) for kind in (False, True)] for _ in range(TURNS)]
        store.dispose()
    without_s = min(plain.between_s for plain, _ in costs)
    with_s = min(ahead.between_s for _, ahead in costs)
    plan_s = min(ahead.ahead_s for _, ahead in costs)
    print(f"between two flushes, per boot: {without_s / SIZE * US:.0f} us without, ", end="")
    print(f"{with_s / SIZE * US:.0f} us with; planning ahead {plan_s / SIZE * US:.0f} us")
    for flush_s in FLUSHES_S:
        before = SIZE / (without_s + flush_s)
        after = SIZE / (with_s + max(flush_s, plan_s))
        gain = after / before - 1
        print(f"flush {flush_s * 1e3:g} ms: at most {before:.0f}, then {after:.0f}/s, {gain:+.0%}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
