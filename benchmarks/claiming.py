"""Measures claims over the Placement API: durable PUTs of allocations, compared with empty POSTs.

Providers are created over the API. Each claim is for a new consumer, on a random provider. After
the run the final state is checked, as after runs of boots.
"""

from __future__ import annotations

import http.client
import json
import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import judging
from benchmarks.clients import ADMIN, Outcome, Question, ask, empty
from benchmarks.figures import Figure
from benchmarks.load import NEW_UUID, PICK
from benchmarks.running import Started, started

VERSION = "1.39"
HEADERS = {"X-Auth-Token": ADMIN, "OpenStack-API-Version": f"placement {VERSION}"}
INVENTORIES = {
    "VCPU": {"total": 96, "max_unit": 96, "allocation_ratio": 16.0},
    "MEMORY_MB": {"total": 1_048_576, "max_unit": 1_048_576},
    "DISK_GB": {"total": 16_000, "max_unit": 16_000},
}
AMOUNTS = {"VCPU": 1, "MEMORY_MB": 1_024, "DISK_GB": 10}
PROJECT = "9a3d1f0c5e5b4b0f8d0a4c6e2b7f1a35"
USER = "1f6f0e9b8c7d4a52a0d3c5b7e9f1a2c4"
WARM_UP_S = 1.0
SEED = 2026


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much work to measure."""

    providers: int
    client_counts: Sequence[int]
    seconds: float
    repetitions: int


def measure(directory: Path, plan: Plan) -> Iterator[Figure]:
    """Measure rates, latencies and ratios at each number of clients."""
    directory.mkdir(parents=True, exist_ok=True)
    acknowledged: list[str] = []
    seeds = iter(range(SEED, SEED + 1_000_000))
    with started(directory, {}) as service:
        asked = claim(_make_providers(service, plan.providers))
        ask(service, empty(ADMIN), 1, WARM_UP_S)
        acknowledged += ask(service, asked, 4, WARM_UP_S, next(seeds))["new_uuids"]
        for clients in plan.client_counts:
            yardstick, claims = Outcome(), Outcome()
            for _ in range(plan.repetitions):
                yardstick.add(ask(service, empty(ADMIN), clients, plan.seconds))
                found = ask(service, asked, clients, plan.seconds, next(seeds))
                acknowledged += found["new_uuids"]
                claims.add(found)
            name = f"claim.{plan.providers}.{clients}"
            yield from yardstick.figures(f"empty.{plan.providers}.{clients}.claim")
            yield from claims.figures(name)
            yield claims.ratio(name, yardstick)
    judging.judge_claims(directory, acknowledged)


def _make_providers(service: Started, count: int) -> list[str]:
    dice = random.Random(SEED)
    uuids = [str(uuid.UUID(int=dice.getrandbits(128), version=4)) for _ in range(count)]
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    try:
        for number, each in enumerate(uuids):
            path = "/placement/resource_providers"
            _send(connection, "POST", path, {"uuid": each, "name": f"provider-{number:06d}"})
            has = {"resource_provider_generation": 0, "inventories": INVENTORIES}
            _send(connection, "PUT", f"{path}/{each}/inventories", has)
    finally:
        connection.close()
    return uuids


def _send(
    connection: http.client.HTTPConnection, method: str, path: str, body: dict[str, Any]
) -> None:
    headers = {**HEADERS, "Content-Type": "application/json"}
    connection.request(method, path, json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != http.client.OK:
        raise RuntimeError(f"{method} {path}: {answer.status} {text[:500]!r}")


def claim(providers: Sequence[str], refusals: Sequence[int] = ()) -> Question:
    """Return a request that allocates part of a random provider to a new consumer."""
    body = {
        "allocations": {PICK.decode(): {"resources": AMOUNTS}},
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
        "project_id": PROJECT,
        "user_id": USER,
    }
    path = f"/placement/allocations/{NEW_UUID.decode()}"
    return Question("PUT", path, HEADERS, json.dumps(body), 204, providers, refusals)
