"""``python -m benchmarks.moving``: measures the duration of ``innkeeper placement-import``.

The source is OpenStack's own service as the tests start it, with SQLite and the standard library's
HTTP server. An import mostly waits for the source, and a production service may respond faster or
slower. The target is the real program with an empty database. Source, target and import run on this
machine at the same time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import httpx

from benchmarks.running import started
from tests.support.original import Original, original

CHUNK = 50
HOST_HAS = {
    "VCPU": {"total": 64, "allocation_ratio": 4.0},
    "MEMORY_MB": {"total": 262144},
    "DISK_GB": {"total": 4000},
}
SERVER_HOLDS = {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 40}


def fill(source: Original, hosts: int, servers: int) -> None:
    """Create hosts, and servers that each have allocations of three classes on one host."""
    uuids = [str(uuid.uuid4()) for _ in range(hosts)]
    for number, each in enumerate(uuids):
        send(source, "POST", "/resource_providers", {"uuid": each, "name": f"host-{number}"})
        body = {"resource_provider_generation": 0, "inventories": HOST_HAS}
        send(source, "PUT", f"/resource_providers/{each}/inventories", body)
    for first in range(0, servers, CHUNK):
        chunk = range(first, min(first + CHUNK, servers))
        send(
            source,
            "POST",
            "/allocations",
            {
                str(uuid.uuid4()): {
                    "allocations": {uuids[number % hosts]: {"resources": SERVER_HOLDS}},
                    "consumer_generation": None,
                    "consumer_type": "INSTANCE",
                    "project_id": f"project-{number % 100}",
                    "user_id": "user",
                }
                for number in chunk
            },
        )


def send(source: Original, method: str, path: str, body: Any) -> None:
    """Send one request that must succeed."""
    answer: httpx.Response = source.call(method, path, body=body)
    assert answer.is_success, answer.text


def measured(words: list[str]) -> float:
    """Run the command, and return the seconds that it took. It must find both sides equal."""
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "innkeeper.main", "placement-import", *words],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - begun


def main() -> None:
    """Fill a source, import it into an empty service, and import it again."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.moving")
    options.add_argument("--hosts", type=int, default=1_000)
    options.add_argument("--servers", type=int, default=3_334)
    options.add_argument("--jobs", type=int, default=8)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="innkeeper-moving-") as folder:
        directory = Path(folder)
        with original(directory) as source, started(directory, {}) as target:
            fill(source, chosen.hosts, chosen.servers)
            words = ["--from-url", source.url, "--from-token", "admin"]
            words += ["--to-url", f"http://127.0.0.1:{target.port}/placement"]
            words += ["--to-token", "admin", "--jobs", str(chosen.jobs)]
            allocations = chosen.servers * len(SERVER_HOLDS)
            print(f"{chosen.hosts} providers, {chosen.servers} consumers, ", end="")
            print(f"{allocations} allocations, {chosen.jobs} jobs")
            print(f"copy and compare   {measured(words):6.1f} s")
            print(f"only compare       {measured([*words, '--verify-only']):6.1f} s")


if __name__ == "__main__":
    main()
