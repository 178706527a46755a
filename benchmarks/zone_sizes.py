"""``python -m benchmarks.zone_sizes``: measures what a zone in a tree needs, by number of hosts.

It measures the memory of the host table, the processor time of one offer, and the size and the
processor time of sealed entries. An offer is a plan with fixed scales that takes nothing from the
table. Other work on the machine affects processor times only through the caches.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec
from msgspec.structs import replace

from benchmarks.deciding import spec_of, table_of
from benchmarks.figures import Figure, median, percentile
from benchmarks.fleet import Fleet
from innkeeper.domain.ids import ServerId
from innkeeper.domain.key_rings import NONCE_BYTES
from innkeeper.domain.placing import RequestSpec
from innkeeper.domain.slices import Scheduling
from innkeeper.domain.zones import Destination, EntryScope
from innkeeper.scheduling import depletion
from innkeeper.scheduling.schedulers.scheduler import Scheduler
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.compute.boot.drivers import scheduler_of
from innkeeper.systems.zones.sealing import Sealer

HOSTS = (10_000, 50_000, 100_000)
COUNTS = (1, 10, 100)
"""The numbers of servers per request."""
WARM_UPS = 20
OFFERS = 200
SEALED = 1_000
MIB = 2**20
MICRO = 1e6


def main(arguments: Sequence[str]) -> int:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zone_sizes", description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS, metavar="N")
    for figure in measure(parser.parse_args(arguments).hosts):
        print(f"{figure.name:<36} {figure.value:>12,.1f} {figure.unit}", flush=True)
    return 0


def measure(host_counts: Sequence[int]) -> Iterator[Figure]:
    """Measure all sizes of zones, then entries."""
    for hosts in host_counts:
        tracemalloc.start()
        table = table_of(Fleet(hosts, allocations=9 * hosts))
        gc.collect()
        allocated, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        yield Figure(f"zone.{hosts}.table", allocated / MIB, "MiB")
        yield Figure(f"zone.{hosts}.table.per_host", allocated / hosts, "bytes")
        for count in COUNTS:
            took = _offers(table, count)
            yield Figure(f"zone.{hosts}.offer_{count}.median", median(took) * MICRO, "us")
            yield Figure(f"zone.{hosts}.offer_{count}.p99", percentile(took, 99) * MICRO, "us")
    yield from _entries()


def _offers(table: HostTable, count: int) -> list[float]:
    """Return the processor time of each offer.

    Between two offers, one server is placed, so the table changes as in a real zone.
    """
    scheduler, dice = scheduler_of(Scheduling()), random.Random(count)
    took = []
    for _ in range(WARM_UPS + OFFERS):
        spec = replace(spec_of(dice, count), has_fixed_scales=True)
        took.append(_processor_time(partial(_offer, scheduler, table, spec)))
        scheduler.plan(table, replace(spec, count=1))
    return took[WARM_UPS:]


def _offer(scheduler: Scheduler, table: HostTable, spec: RequestSpec) -> None:
    depletion.undo(table, spec, scheduler.plan(table, spec))


def _processor_time(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def _entries() -> Iterator[Figure]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    scope = EntryScope("3f0e7c0a9d7c4a56b3a04f5f9d2d8f11", "0" * 64)
    sealer = Sealer("zone", [bytes(range(32))], 600.0)
    server, provider = ("3f0e7c0a-9d7c-4a56-b3a0-4f5f9d2d8f11",) * 2
    place = Destination(ServerId(server), "rack-17-host-0042.example.org", provider)
    nonces = [number.to_bytes(NONCE_BYTES, "big") for number in range(SEALED)]
    sealing = _processor_time(lambda: [sealer.seal(place, scope, each, now) for each in nonces])
    entry = sealer.seal(place, scope, nonces[0], now)
    opening = _processor_time(lambda: [sealer.open(entry, scope) for _ in nonces])
    offer = msgspec.json.encode({"weight": -1.2345678901234567, "blob": entry})
    yield Figure("entry.sealed", len(entry), "bytes")
    yield Figure("entry.offer_in_json", len(offer), "bytes")
    yield Figure("entry.seal", sealing / SEALED * MICRO, "us")
    yield Figure("entry.open", opening / SEALED * MICRO, "us")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
