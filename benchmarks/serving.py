"""What a client of the started service gets: empty POSTs, and durable boots beside them.

Always true: what is compared was measured in turns on the same process of the same service,
with the same clients. After each run the final state is judged; a run that lost a server or
oversold a host gives no figures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import judging
from benchmarks.building import agent_beside
from benchmarks.figures import Figure, median, percentile
from benchmarks.fleet import FLAVOR_ID, Fleet
from benchmarks.load import MARK
from benchmarks.running import ALIVE_WITHOUT_AGENT, Started, filled, started
from benchmarks.served import EMPTY_PATH

VERSION = "2.74"
"""What the stock command asks for when it creates servers."""
TOKEN = "bencher:bench"
PREFIX = "/compute"
WARM_UP_S = 1.0
ALLOCATIONS_PER_HOST = 9
EMPTY_BODY = b"{}"
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
).encode()
"""What the stock command sends for ``server create``, but for the order of its keys."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure."""

    host_counts: Sequence[int]
    client_counts: Sequence[int]
    seconds: float
    repetitions: int


@dataclass(slots=True)
class Outcome:
    """What one kind of request gave, over all repetitions."""

    rates: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    p99s: list[float] = field(default_factory=list)

    def add(self, found: dict[str, Any]) -> None:
        """Count one run of the load."""
        latencies = found["latencies_s"]
        self.rates.append(found["answers"] / found["took_s"])
        self.medians.append(median(latencies))
        self.p99s.append(percentile(latencies, 99))

    def figures(self, name: str) -> Iterator[Figure]:
        """The medians of the repetitions."""
        yield Figure(f"{name}.rate", median(self.rates), "/s", is_rate=True)
        yield Figure(f"{name}.median", median(self.medians) * 1e3, "ms")
        yield Figure(f"{name}.p99", median(self.p99s) * 1e3, "ms")


def measure(directory: Path, plan: Plan, *, is_building: bool) -> Iterator[Figure]:
    """Rates, latencies and ratios at each number of hosts and clients; memory at the end."""
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
            _load(service, "empty", 1, WARM_UP_S)
            acknowledged += _load(service, "boot", 4, WARM_UP_S)["server_ids"]
            for clients in plan.client_counts:
                empty, boot = Outcome(), Outcome()
                for _ in range(plan.repetitions):
                    empty.add(_load(service, "empty", clients, plan.seconds))
                    found = _load(service, "boot", clients, plan.seconds)
                    acknowledged += found["server_ids"]
                    boot.add(found)
                yield from empty.figures(f"empty.{hosts}.{clients}.{kind}")
                yield from boot.figures(f"{kind}.{hosts}.{clients}")
                ratios = [b / e for b, e in zip(boot.rates, empty.rates, strict=True)]
                yield Figure(f"{kind}.{hosts}.{clients}.ratio", median(ratios), "", True)
            yield Figure(f"memory.{hosts}.{kind}.after", service.resident_mb(), "MB")
    judging.judge(place, acknowledged)


def _load(service: Started, what: str, clients: int, seconds: float) -> dict[str, Any]:
    path = PREFIX + (EMPTY_PATH if what == "empty" else "/v2.1/servers")
    command = [sys.executable, "-m", "benchmarks.load", "--port", str(service.port)]
    command += ["--path", path, "--clients", str(clients), "--seconds", str(seconds)]
    command += ["--token", TOKEN, "--version", VERSION]
    body = EMPTY_BODY if what == "empty" else BOOT_BODY
    done = subprocess.run(command, input=body, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    if found["statuses"].keys() != {"202"}:
        raise RuntimeError(f"{what}: {found['statuses']} {found['strays']}")
    if what == "boot" and len(found["server_ids"]) != found["answers"]:
        raise RuntimeError("An acknowledgement did not name its server.")
    return found
