"""Measures how long a service takes to read its host table from SQLite, and to become ready.

The time for reading alone is measured inside this process. The time to become ready is that of a
real service, from its start until ``/readyz`` first succeeds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, median
from benchmarks.fleet import Fleet
from benchmarks.running import filled, started, store_in
from innkeeper.snapshot.follower import Follower

ALLOCATIONS_PER_HOST = 10


def measure(directory: Path, host_count: int, repetitions: int) -> Iterator[Figure]:
    """Measure the times of reading and of starting, and the memory of the started service."""
    fleet = Fleet(host_count, allocations=ALLOCATIONS_PER_HOST * host_count)
    filled(directory, fleet)
    took = [_read_s(directory, host_count) for _ in range(repetitions)]
    yield Figure(f"load.{host_count}.read", median(took), "s")
    with started(directory) as service:
        yield Figure(f"load.{host_count}.start", service.ready_after_s, "s")
        yield Figure(f"memory.{host_count}.start", service.resident_mb(), "MB")


def _read_s(directory: Path, host_count: int) -> float:
    store = store_in(directory)
    try:
        begun = time.perf_counter()
        with store.read() as tx:
            follower = Follower()
            follower.load(tx)
        took = time.perf_counter() - begun
        assert follower.table.host_count == host_count
        return took
    finally:
        store.dispose()
