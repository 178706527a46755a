"""Measures durable creates of volumes, durable boots of servers, and a mixture of both.

Always true: all kinds of requests were measured in turns on the same process, with the same
clients. After the run the final state is checked, as after boots.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import judging
from benchmarks.clients import TOKEN, Outcome, Question, ask, compute_headers, empty
from benchmarks.figures import Figure
from benchmarks.fleet import Fleet
from benchmarks.load import MARK
from benchmarks.running import ALIVE_WITHOUT_AGENT, UNLIMITED, filled, started
from benchmarks.serving import ALLOCATIONS_PER_HOST, BOOT, WARM_UP_S

VERSION = "3.71"
BODY = json.dumps(
    {
        "volume": {
            "availability_zone": None,
            "backup_id": None,
            "consistencygroup_id": None,
            "description": None,
            "imageRef": None,
            "metadata": {},
            "name": "bench-" + MARK.decode(),
            "size": 1,
            "snapshot_id": None,
            "source_volid": None,
            "volume_type": None,
        }
    }
)
"""The body that the stock ``volume create`` sends, except for the order of its keys."""
HEADERS = {**compute_headers(TOKEN), "OpenStack-API-Version": f"volume {VERSION}"}
CREATE = Question("POST", "/volume/v3/volumes", HEADERS, BODY, 202)
KINDS = {
    "empty": empty(),
    "servers": BOOT,
    "volumes": CREATE,
    "mixed": replace(CREATE, beside=BOOT),
}
"""The requests, by the names of their figures. ``mixed`` sends creates and boots in turns."""
SETTINGS = {
    **ALIVE_WITHOUT_AGENT,
    "INNKEEPER_QUOTA_VOLUMES": UNLIMITED,
    "INNKEEPER_QUOTA_GIGABYTES": UNLIMITED,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much work to measure."""

    hosts: int
    client_counts: Sequence[int]
    seconds: float
    repetitions: int


def measure(directory: Path, plan: Plan) -> Iterator[Figure]:
    """Measure rates, latencies, ratios and processor time by number of clients."""
    filled(directory, Fleet(plan.hosts, allocations=ALLOCATIONS_PER_HOST * plan.hosts))
    servers: list[str] = []
    volumes: list[str] = []
    with started(directory, SETTINGS) as service:

        def run(kind: str, clients: int, seconds: float) -> dict[str, Any]:
            found = ask(service, KINDS[kind], clients, seconds)
            servers.extend(found["server_ids"])
            volumes.extend(found["volume_ids"])
            return found

        for kind in KINDS:
            run(kind, 4, WARM_UP_S)
        for clients in plan.client_counts:
            yield from _measure_one(run, plan, clients)
        yield Figure("volumes.memory.after", service.resident_mb(), "MB")
    judging.judge_volumes(directory, servers, volumes)


def _measure_one(run: Any, plan: Plan, clients: int) -> Iterator[Figure]:
    kinds = {kind: Outcome() for kind in KINDS}
    for _ in range(plan.repetitions):
        for kind, each in kinds.items():
            each.add(run(kind, clients, plan.seconds))
    for kind, each in kinds.items():
        name = f"volumes.{kind}.{clients}"
        yield from each.figures(name)
        if kind != "empty":
            yield each.ratio(name, kinds["empty"])
