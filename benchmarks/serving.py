"""Measures requests to a running service: durable boots, compared with empty POSTs.

Always true: compared figures were measured in turns on the same process, with the same clients.
After each run the final state is checked. A run that lost a server or overfilled a host has no
figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import judging
from benchmarks.building import agent_beside
from benchmarks.clients import TOKEN, Outcome, Question, ask, compute_headers, empty
from benchmarks.figures import Figure
from benchmarks.fleet import FLAVOR_ID, Fleet
from benchmarks.load import MARK
from benchmarks.running import ALIVE_WITHOUT_AGENT, Started, filled, started

WARM_UP_S = 1.0
ALLOCATIONS_PER_HOST = 9
BOOT_BODY = json.dumps(
    {
        "server": {
            "block_device_mapping_v2": [
                {
                    "boot_index": 0,
                    "delete_on_termination": True,
                    "destination_type": "local",
                    "source_type": "blank",
                }
            ],
            "flavorRef": FLAVOR_ID,
            "imageRef": "",
            "max_count": 1,
            "min_count": 1,
            "name": "bench-" + MARK.decode(),
            "networks": "none",
        }
    }
)
"""The body that the stock ``server create`` sends, except for the order of its keys."""
BOOT = Question("POST", "/compute/v2.1/servers", compute_headers(TOKEN), BOOT_BODY, 202)


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much work to measure."""

    host_counts: Sequence[int]
    client_counts: Sequence[int]
    seconds: float
    repetitions: int


def measure(directory: Path, plan: Plan, *, is_building: bool) -> Iterator[Figure]:
    """Measure rates, latencies and ratios by number of hosts and clients, and the final memory."""
    for hosts in plan.host_counts:
        place = directory / f"{hosts}{'-building' if is_building else ''}"
        place.mkdir(parents=True)
        if not is_building:
            filled(place, Fleet(hosts, allocations=ALLOCATIONS_PER_HOST * hosts))
        yield from _measure_one(place, plan, hosts, is_building=is_building)


def _measure_one(place: Path, plan: Plan, hosts: int, *, is_building: bool) -> Iterator[Figure]:
    kind = "building" if is_building else "boot"
    acknowledged: list[str] = []
    with started(place, {} if is_building else ALIVE_WITHOUT_AGENT) as service:
        beside: AbstractContextManager[None] = nullcontext()
        if is_building:
            beside = agent_beside(place, service, hosts)
        with beside:
            yield Figure(f"memory.{hosts}.{kind}.before", service.resident_mb(), "MB")
            ask(service, empty(), 1, WARM_UP_S)
            acknowledged += _boot(service, 4, WARM_UP_S)["server_ids"]
            for clients in plan.client_counts:
                yardstick, boot = Outcome(), Outcome()
                for _ in range(plan.repetitions):
                    yardstick.add(ask(service, empty(), clients, plan.seconds))
                    found = _boot(service, clients, plan.seconds)
                    acknowledged += found["server_ids"]
                    boot.add(found)
                yield from yardstick.figures(f"empty.{hosts}.{clients}.{kind}")
                yield from boot.figures(f"{kind}.{hosts}.{clients}")
                yield boot.ratio(f"{kind}.{hosts}.{clients}", yardstick)
            yield Figure(f"memory.{hosts}.{kind}.after", service.resident_mb(), "MB")
    judging.judge(place, acknowledged)


def _boot(service: Started, clients: int, seconds: float) -> dict[str, Any]:
    found = ask(service, BOOT, clients, seconds)
    if len(found["server_ids"]) != found["done"]:
        raise RuntimeError("The response to a boot contains no server id.")
    return found
