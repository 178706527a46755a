"""Measures searches for allocation candidates, in sequence and over HTTP.

Flat providers have all classes themselves. Nested providers are machines with disks, two NUMA nodes
with processors and memory, and two devices at each node. A candidate of a nested provider has
processors, memory and a device of the same node. All providers are partly in use. They are written
into the database before the service starts.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from benchmarks.claiming import HEADERS
from benchmarks.clients import Question, ask
from benchmarks.figures import Figure, median, percentile
from benchmarks.fleet import insert_rows
from benchmarks.running import started, store_in
from innkeeper import wiring
from innkeeper.store.tables import placement
from innkeeper.store.transactions import Store

PATH = "/placement/allocation_candidates"
# Nova adds these to every search.
ROOT_REQUIRED = "root_required=!COMPUTE_STATUS_DISABLED"
QUERIES = {
    "flat": f"resources=DISK_GB:20,MEMORY_MB:2048,VCPU:2&{ROOT_REQUIRED}",
    "nested": "resources=DISK_GB:20&resources_NUMA=MEMORY_MB:2048,VCPU:2"
    "&resources_DEVICE=VGPU:1&same_subtree=_NUMA,_DEVICE&group_policy=none&" + ROOT_REQUIRED,
}
UNLIMITED = "none"
LIMITS = ("1", "1000", UNLIMITED)
NUMA_NODES = 2
DEVICES_PER_NODE = 2
HOLDERS_PER_HOST = 3
SEED = 2026


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much work to measure."""

    host_counts: Sequence[int]
    seconds: float


class Part(NamedTuple):
    """One provider of a machine: its position in the tree, its inventories and their usage."""

    name: str
    parent: str | None
    has: Mapping[str, int]
    held: Mapping[str, int]


PROCESSING = {"VCPU": 64, "MEMORY_MB": 262_144}
PROCESSING_HELD = {"VCPU": 2, "MEMORY_MB": 4_096}
DISK = {"DISK_GB": 4_000}
DISK_HELD = {"DISK_GB": 40}
MACHINES = {
    "flat": (Part("", None, PROCESSING | DISK, PROCESSING_HELD | DISK_HELD),),
    "nested": (
        Part("", None, DISK, DISK_HELD),
        *(Part(f"-{n}", "", PROCESSING, PROCESSING_HELD) for n in range(NUMA_NODES)),
        *(
            Part(f"-{n}-{m}", f"-{n}", {"VGPU": 8}, {"VGPU": 1})
            for n in range(NUMA_NODES)
            for m in range(DEVICES_PER_NODE)
        ),
    ),
}


def measure(directory: Path, plan: Plan) -> Iterator[Figure]:
    """Measure latencies of searches and the service's memory, by kind of provider and limit."""
    for shape, machine in MACHINES.items():
        for hosts in plan.host_counts:
            place = directory / f"{shape}-{hosts}"
            place.mkdir(parents=True)
            store = store_in(place)
            fill(store, machine, hosts, wiring.now())
            store.dispose()
            with started(place, {}) as service:
                name = f"candidates.{shape}.{hosts}"
                # The first search reads all providers, and is not measured here.
                first = ask(service, _search(shape, "1"), 1, 0.0)
                yield Figure(f"{name}.first", first["latencies_s"][0], "s")
                for limit in LIMITS:
                    found = ask(service, _search(shape, limit), 1, plan.seconds)
                    took = found["latencies_s"]
                    yield Figure(f"{name}.{limit}.median", median(took) * 1e3, "ms")
                    yield Figure(f"{name}.{limit}.p99", percentile(took, 99) * 1e3, "ms")
                    size = found["bytes"] / len(took) / 1e3
                    yield Figure(f"{name}.{limit}.size", size, "kB")
                yield Figure(f"memory.{hosts}.{shape}.after", service.resident_mb(), "MB")


def _search(shape: str, limit: str) -> Question:
    limited = "" if limit == UNLIMITED else f"&limit={limit}"
    return Question("GET", f"{PATH}?{QUERIES[shape]}{limited}", HEADERS)


def fill(store: Store, machine: Sequence[Part], count: int, now: datetime) -> None:
    """Write ``count`` machines into a new store, each with a few consumers."""
    dice = random.Random(SEED)
    moments = {"created_at": now, "updated_at": now}
    classes = placement.resource_classes
    with store.write() as tx:
        class_ids = {
            name: row_id for name, row_id in tx.execute(sa.select(classes.c.name, classes.c.id))
        }
    rows = list(_providers(machine, count, dice))
    insert_rows(store, placement.resource_providers, ({**row, **moments} for row in rows))
    insert_rows(
        store,
        placement.inventories,
        ({**row, **moments} for row in _inventories(machine, count, class_ids)),
    )
    holders = [[str(_uuid(dice)) for _ in range(HOLDERS_PER_HOST)] for _ in range(count)]
    insert_rows(
        store,
        placement.consumers,
        ({**_consumer(each), **moments} for holder in holders for each in holder),
    )
    insert_rows(
        store,
        placement.allocations,
        ({**row, "created_at": now} for row in _held(machine, holders, class_ids)),
    )


def _uuid(dice: random.Random) -> uuid.UUID:
    return uuid.UUID(int=dice.getrandbits(128), version=4)


def _ids(machine: Sequence[Part], number: int) -> dict[str, int]:
    """Return the row ids of the providers of one machine, by their names within the machine."""
    first = number * len(machine) + 1
    return {part.name: first + index for index, part in enumerate(machine)}


def _providers(
    machine: Sequence[Part], count: int, dice: random.Random
) -> Iterator[dict[str, Any]]:
    for number in range(count):
        ids = _ids(machine, number)
        for part in machine:
            is_root = part.parent is None
            yield {
                "id": ids[part.name],
                "uuid": str(_uuid(dice)),
                "name": f"machine-{number:06d}{part.name}",
                "generation": 1,
                "can_host": 1,
                "parent_provider_id": None if part.parent is None else ids[part.parent],
                "root_provider_id": None if is_root else ids[machine[0].name],
            }


def _inventories(
    machine: Sequence[Part], count: int, class_ids: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    for number in range(count):
        ids = _ids(machine, number)
        for part in machine:
            for name, total in part.has.items():
                yield {
                    "resource_provider_id": ids[part.name],
                    "resource_class_id": class_ids[name],
                    "total": total,
                    "reserved": 0,
                    "min_unit": 1,
                    "max_unit": total,
                    "step_size": 1,
                    "allocation_ratio": 1.0,
                }


def _consumer(consumer_uuid: str) -> dict[str, Any]:
    return {
        "uuid": consumer_uuid,
        "project_id": "others",
        "user_id": "others",
        "generation": 1,
        "consumer_type": "INSTANCE",
    }


def _held(
    machine: Sequence[Part], holders: Sequence[Sequence[str]], class_ids: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    for number, consumers in enumerate(holders):
        ids = _ids(machine, number)
        for consumer in consumers:
            for part in machine:
                for name, used in part.held.items():
                    yield {
                        "resource_provider_id": ids[part.name],
                        "consumer_id": consumer,
                        "resource_class_id": class_ids[name],
                        "used": used,
                    }
