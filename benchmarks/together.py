"""Measures how long it takes until all servers of a request for a thousand servers are durable.

The response has only the reservation id of the request, so it is small. Afterwards the servers are
counted, and the final state is checked as after every run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks import judging
from benchmarks.clients import TOKEN, compute_headers
from benchmarks.figures import Figure, median
from benchmarks.fleet import Fleet
from benchmarks.running import ALIVE_WITHOUT_AGENT, filled, started
from benchmarks.serving import ALLOCATIONS_PER_HOST, BOOT_BODY

SERVERS = 1_000
TIMEOUT_S = 60.0
WARM_UPS = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much work to measure."""

    host_counts: Sequence[int]
    requests: int


def measure(directory: Path, plan: Plan) -> Iterator[Figure]:
    """Measure several requests, one after the other; yields the median and the longest time."""
    for hosts in plan.host_counts:
        place = directory / str(hosts)
        place.mkdir(parents=True)
        filled(place, Fleet(hosts, allocations=ALLOCATIONS_PER_HOST * hosts))
        acknowledged: list[str] = []
        took: list[float] = []
        with (
            started(place, ALIVE_WITHOUT_AGENT) as service,
            httpx.Client(
                base_url=f"http://127.0.0.1:{service.port}/compute/v2.1",
                headers=compute_headers(TOKEN),
                timeout=TIMEOUT_S,
            ) as client,
        ):
            for number in range(WARM_UPS + plan.requests):
                seconds, batch_id = boot(client)
                acknowledged += _servers(client, batch_id)
                if number >= WARM_UPS:
                    took.append(seconds)
        judging.judge(place, acknowledged)
        yield Figure(f"together.{hosts}.median", median(took) * 1e3, "ms")
        yield Figure(f"together.{hosts}.longest", max(took) * 1e3, "ms")


def boot(client: httpx.Client) -> tuple[float, str]:
    """Boot ``SERVERS`` servers; returns the seconds until the answer, and the id of the batch."""
    body: dict[str, Any] = json.loads(BOOT_BODY)
    body["server"] |= {"min_count": SERVERS, "max_count": SERVERS, "return_reservation_id": True}
    begun = time.perf_counter()
    answer = client.post("/servers", json=body)
    took = time.perf_counter() - begun
    if answer.status_code != httpx.codes.ACCEPTED:
        raise RuntimeError(f"{answer.status_code}: {answer.text}")
    return took, str(answer.json()["reservation_id"])


def _servers(client: httpx.Client, batch_id: str) -> list[str]:
    wanted = {"reservation_id": batch_id, "limit": str(SERVERS)}
    found = client.get("/servers", params=wanted).json()["servers"]
    if len(found) != SERVERS:
        raise RuntimeError(f"The request has {len(found)} servers, not as many as it asked for.")
    return [str(each["id"]) for each in found]
