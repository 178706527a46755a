"""Builds a synthetic cloud: hosts of three generations, and consumers with allocations on them.

Always true: the same seed and number of hosts result in the same hosts and amounts, and no host is
over its capacity.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import sqlalchemy as sa

from innkeeper.store.tables import compute, placement
from innkeeper.store.transactions import Store

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
SHAPES = ((32, 131_072, 2_000), (64, 262_144, 4_000), (96, 524_288, 8_000))
"""vCPUs, memory and disk of three generations of machines."""
RATIOS = (4.0, 1.0, 1.0)
HELD = ((1, 2_048, 20), (2, 4_096, 40), (4, 8_192, 80), (8, 16_384, 160))
"""vCPUs, memory and disk of the initial consumers' allocations."""
OTHERS = "others"
"""The project and the user of the initial consumers."""
AGENT_ID = "00000000-0000-4000-8000-000000000001"
AGENT_NAME = "benchmark"
FLAVOR_ID = "1"
FLAVOR = {"vcpus": 1, "memory_mb": 1_024, "disk_gb": 10}
ROWS_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Fleet:
    """The size of the cloud.

    ``allocations`` is the number of rows of allocations. Each consumer has three rows. If ``shape``
    is given, all hosts have it.
    """

    hosts: int
    allocations: int
    seed: int = 2026
    shape: tuple[int, int, int] | None = None

    def shapes(self) -> list[tuple[int, int, int]]:
        """Return the shape of each host."""
        if self.shape is not None:
            return [self.shape] * self.hosts
        dice = random.Random(self.seed)
        return [SHAPES[dice.randrange(len(SHAPES))] for _ in range(self.hosts)]

    def holdings(self) -> list[tuple[int, tuple[int, int, int]]]:
        """Return the host index and the amounts of each consumer, evenly distributed over hosts."""
        dice = random.Random(self.seed + 1)
        count = self.allocations // len(CLASSES)
        assert count * max(each[1] for each in HELD) <= self.hosts * SHAPES[0][1]
        return [(i % self.hosts, HELD[dice.randrange(len(HELD))]) for i in range(count)]


def fill(store: Store, fleet: Fleet, now: datetime) -> None:
    """Write the whole fleet into a fresh store, with one flavor to boot."""
    dice = random.Random(fleet.seed + 2)
    with store.write() as tx:
        tx.execute(compute.agents.insert(), _agent(now))
        tx.execute(compute.flavors.insert(), _flavor(now))
        classes = placement.resource_classes
        names = sa.select(classes.c.name, classes.c.id).where(classes.c.name.in_(CLASSES))
        ids = {name: class_id for name, class_id in tx.execute(names)}
    class_ids = [ids[name] for name in CLASSES]
    insert_rows(store, placement.resource_providers, _providers(fleet, dice, now))
    insert_rows(store, placement.inventories, _inventories(fleet, class_ids, now))
    insert_rows(store, compute.hosts, _hosts(fleet, dice, now))
    consumers = [str(_uuid(dice)) for _ in fleet.holdings()]
    insert_rows(store, placement.consumers, _consumers(consumers, now))
    insert_rows(store, placement.allocations, _allocations(fleet, consumers, class_ids, now))


def host_name(index: int) -> str:
    """Return the name of a host."""
    return f"host-{index:06d}"


def insert_rows(store: Store, table: sa.Table, rows: Iterator[dict[str, Any]]) -> None:
    """Write many rows, in transactions of limited size.

    In a Galera cluster, the other nodes would apply one large transaction long after its commit.
    Readers on these nodes would wait for it.
    """
    while some := list(islice(rows, ROWS_AT_ONCE)):
        with store.write() as tx:
            tx.execute(table.insert(), some)


def _uuid(dice: random.Random) -> uuid.UUID:
    return uuid.UUID(int=dice.getrandbits(128), version=4)


def _agent(now: datetime) -> dict[str, Any]:
    return {
        "id": AGENT_ID,
        "name": AGENT_NAME,
        "driver": "fake",
        "user_id": "admin",
        "last_seen_at": now,
        "created_at": now,
    }


def _flavor(now: datetime) -> dict[str, Any]:
    return {
        "flavor_id": FLAVOR_ID,
        "name": "small",
        **FLAVOR,
        "ephemeral_gb": 0,
        "swap_mb": 0,
        "rxtx_factor": 1.0,
        "is_public": True,
        "is_disabled": False,
        "extra_specs": {},
        "created_at": now,
        "updated_at": now,
    }


def _providers(fleet: Fleet, dice: random.Random, now: datetime) -> Iterator[dict[str, Any]]:
    for index in range(fleet.hosts):
        yield {
            "id": index + 1,
            "uuid": str(_uuid(dice)),
            "name": host_name(index),
            "generation": 1,
            "can_host": 1,
            "created_at": now,
            "updated_at": now,
        }


def _inventories(fleet: Fleet, class_ids: list[int], now: datetime) -> Iterator[dict[str, Any]]:
    for index, shape in enumerate(fleet.shapes()):
        for class_id, total, ratio in zip(class_ids, shape, RATIOS, strict=True):
            yield {
                "resource_provider_id": index + 1,
                "resource_class_id": class_id,
                "total": total,
                "reserved": 0,
                "min_unit": 1,
                "max_unit": total,
                "step_size": 1,
                "allocation_ratio": ratio,
                "created_at": now,
                "updated_at": now,
            }


def _hosts(fleet: Fleet, dice: random.Random, now: datetime) -> Iterator[dict[str, Any]]:
    for index in range(fleet.hosts):
        yield {
            "service_uuid": str(_uuid(dice)),
            "name": host_name(index),
            "provider_id": index + 1,
            "agent_id": AGENT_ID,
            "availability_zone": "nova",
            "is_disabled": False,
            "is_forced_down": False,
            "hypervisor_type": "fake",
            "hypervisor_version": 1000,
            "host_ip": "127.0.0.1",
            "cpu_facts": {"arch": "x86_64"},
            "capabilities": {"arch": "x86_64"},
            "reported": {"classes": sorted(CLASSES), "traits": []},
            "created_at": now,
            "updated_at": now,
        }


def _consumers(uuids: list[str], now: datetime) -> Iterator[dict[str, Any]]:
    for each in uuids:
        yield {
            "uuid": each,
            "project_id": OTHERS,
            "user_id": OTHERS,
            "generation": 1,
            "consumer_type": "BENCHMARK",
            "created_at": now,
            "updated_at": now,
        }


def _allocations(
    fleet: Fleet, consumers: list[str], class_ids: list[int], now: datetime
) -> Iterator[dict[str, Any]]:
    for consumer, (host, amounts) in zip(consumers, fleet.holdings(), strict=True):
        for class_id, used in zip(class_ids, amounts, strict=True):
            yield {
                "resource_provider_id": host + 1,
                "consumer_id": consumer,
                "resource_class_id": class_id,
                "used": used,
                "created_at": now,
            }
