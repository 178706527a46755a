"""``python -m benchmarks.upstream``: compares OpenStack's Placement with ours.

Both get the same requests on this machine, in turns, from one client. The times depend on the
machine, so the ratios mean more. OpenStack's service runs as tests start it: SQLite does not flush,
and the HTTP server is the standard library's. Ours is the real program, which flushes at every
commit.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from benchmarks.figures import median
from benchmarks.running import started
from tests.support.original import Original, original

QUERY = "resources=VCPU:2,MEMORY_MB:2048,DISK_GB:20"
LIMITS = ("10", "1000", None)
HAS = {
    "VCPU": {"total": 64, "allocation_ratio": 4.0},
    "MEMORY_MB": {"total": 262_144},
    "DISK_GB": {"total": 4_000},
}
TAKES = {"VCPU": 1, "MEMORY_MB": 1_024, "DISK_GB": 10}
NANOSECONDS = 1e9

Sides = Mapping[str, Original]


def fill(side: Original, uuids: list[str]) -> None:
    """Create flat providers with three classes each."""
    for number, each in enumerate(uuids):
        send(side, "POST", "/resource_providers", {"uuid": each, "name": f"host-{number}"})
        body = {"resource_provider_generation": 0, "inventories": HAS}
        send(side, "PUT", f"/resource_providers/{each}/inventories", body)


def send(side: Original, method: str, path: str, body: Any = None) -> httpx.Response:
    """Send one request that must succeed."""
    answer = side.call(method, path, body=body)
    assert answer.is_success, answer.text
    return answer


def get(path: str, side: Original) -> None:
    """Send one GET."""
    send(side, "GET", path)


def claim(provider: str, side: Original) -> None:
    """Claim part of a provider for a new consumer."""
    body = {
        "allocations": {provider: {"resources": TAKES}},
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
        "project_id": "project",
        "user_id": "user",
    }
    send(side, "PUT", f"/allocations/{uuid.uuid4()}", body)


def compare(name: str, sides: Sides, times: int, act: Callable[[Original], Any]) -> None:
    """Send the same requests to both in turn, and print the medians and their ratio."""
    took: dict[str, list[float]] = {each: [] for each in sides}
    for _ in range(times):
        for each, side in sides.items():
            begun = time.perf_counter_ns()
            act(side)
            took[each].append((time.perf_counter_ns() - begun) / NANOSECONDS * 1e3)
    theirs, ours = median(took["upstream"]), median(took["innkeeper"])
    print(f"{name:34} {theirs:10.1f} {ours:10.2f} {theirs / ours:8.0f}")


def main() -> None:
    """Fill both with the same providers, and compare them."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.upstream")
    options.add_argument("--hosts", type=int, default=1_000)
    options.add_argument("--times", type=int, default=20)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=".", prefix="benchmark-") as folder:
        directory = Path(folder).resolve()
        (directory / "ours").mkdir()
        with original(directory) as upstream, started(directory / "ours", {}) as service:
            ours = Original(f"http://127.0.0.1:{service.port}/placement")
            sides = {"upstream": upstream, "innkeeper": ours}
            uuids = [str(uuid.uuid4()) for _ in range(chosen.hosts)]
            for side in sides.values():
                fill(side, uuids)
            print(f"{chosen.hosts} flat providers, {chosen.times} times each, medians\n")
            print(f"{'':34} {'upstream ms':>10} {'ours ms':>9} {'ratio':>8}")
            for limit in LIMITS:
                limited = "" if limit is None else f"&limit={limit}"
                path = f"/allocation_candidates?{QUERY}{limited}"
                name = f"allocation_candidates, limit {limit or 'none'}"
                compare(name, sides, chosen.times, partial(get, path))
            compare("PUT allocations", sides, chosen.times, partial(claim, uuids[0]))
            compare("list of providers", sides, chosen.times, partial(get, "/resource_providers"))
            one = f"/resource_providers/{uuids[0]}/inventories"
            compare("inventories of a provider", sides, chosen.times, partial(get, one))
            ours.http.close()


if __name__ == "__main__":
    main()
