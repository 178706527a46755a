"""A driver without machines: it remembers which servers it would have built.

Always true: what it remembers is in a file before an order counts as carried out, so a killed
agent that comes back still has its servers. It is not flushed to the disk each time; what a
power failure takes from it, nobody misses.
"""

from __future__ import annotations

import fnmatch
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from innkeeper.entrypoints.agent.drivers.driver import DriverFailed, HostFacts, Order

NAME = "fake"
STATE_FILE = "fake.sqlite3"
FAIL_KEY = "fail-build"
"""A server with this key in its metadata fails; the value is the message."""
LOCK_TIMEOUT_S = 10.0
CPU_FACTS = {
    "arch": "x86_64",
    "model": "Made-up",
    "vendor": "Innkeeper",
    "features": ["aes", "avx2"],
    "topology": {"sockets": 2, "cores": 8, "threads": 2},
}
TRAITS = ("HW_CPU_X86_AVX2", "HW_CPU_X86_AESNI")


@dataclass(frozen=True, slots=True)
class FakeOptions:
    """How many hosts of what size there are, and how they behave.

    ``zones`` are given to the hosts in turn. ``fail_builds_on`` is a pattern of host names, as
    the shell has them.
    """

    hosts: int = 1
    host_prefix: str = "host-"
    zones: Sequence[str] = ()
    vcpus: int = 32
    memory_mb: int = 131072
    disk_gb: int = 2000
    build_time_s: float = 0.0
    fail_builds_on: str | None = None
    traits: Sequence[str] = TRAITS
    capabilities: Mapping[str, Any] = field(
        default_factory=lambda: {"cpu_mhz": 2600, "cpu_arch": "x86_64", "disk_type": "ssd"}
    )


class FakeDriver:
    """See :class:`innkeeper.entrypoints.agent.drivers.driver.Driver`."""

    def __init__(
        self, options: FakeOptions, state_dir: Path, wait: Callable[[float], Any]
    ) -> None:
        self._options = options
        self._wait = wait
        self._lock = threading.Lock()
        self._names = [f"{options.host_prefix}{n}" for n in range(1, options.hosts + 1)]
        self._known = frozenset(self._names)
        path = state_dir / STATE_FILE
        # SQLite gives its other files the permissions of this one.
        path.touch(mode=0o600)
        self._state = sqlite3.connect(
            path,
            check_same_thread=False,
            isolation_level=None,
            timeout=LOCK_TIMEOUT_S,
        )
        self._state.execute("PRAGMA journal_mode=WAL")
        self._state.execute("PRAGMA synchronous=NORMAL")
        self._state.execute(
            "CREATE TABLE IF NOT EXISTS servers (id TEXT, host TEXT, PRIMARY KEY (id, host))"
        )

    def hosts(self) -> Sequence[HostFacts]:
        """See the protocol."""
        options = self._options
        zones: Sequence[str | None] = options.zones or (None,)
        inventories = {
            "VCPU": {"total": options.vcpus},
            "MEMORY_MB": {"total": options.memory_mb},
        }
        if options.disk_gb:
            # A host without disks does not say so: it needs a pool, see the guide.
            inventories["DISK_GB"] = {"total": options.disk_gb}
        return [
            HostFacts(
                name=name,
                inventories=inventories,
                traits=options.traits,
                capabilities=options.capabilities,
                availability_zone=zones[index % len(zones)],
                host_type=NAME,
                host_version=1000,
                cpu_facts=CPU_FACTS,
            )
            for index, name in enumerate(self._names)
        ]

    def servers(self) -> Mapping[str, Sequence[str]]:
        """See the protocol."""
        found: dict[str, list[str]] = {name: [] for name in self._names}
        with self._lock:
            rows = self._state.execute("SELECT host, id FROM servers ORDER BY id").fetchall()
        for host, server_id in rows:
            # Fewer hosts than last time: what was on the others is kept for when they return.
            if host in found:
                found[host].append(server_id)
        return found

    def build(self, order: Order) -> None:
        """See the protocol."""
        options = self._options
        if order.host not in self._known:
            raise DriverFailed(f"There is no host {order.host} here.")
        if options.build_time_s > 0:
            self._wait(options.build_time_s)
        metadata = order.body.get("metadata")
        asked = metadata.get(FAIL_KEY) if isinstance(metadata, Mapping) else None
        if asked is not None:
            raise DriverFailed(f"The build was asked to fail: {asked}")
        if options.fail_builds_on and fnmatch.fnmatchcase(order.host, options.fail_builds_on):
            raise DriverFailed(f"Builds on {order.host} fail, as the agent was told.")
        with self._lock:
            self._state.execute(
                "INSERT OR IGNORE INTO servers (id, host) VALUES (?, ?)",
                (order.server_id, order.host),
            )

    def destroy(self, order: Order) -> None:
        """See the protocol."""
        with self._lock:
            self._state.execute(
                "DELETE FROM servers WHERE id = ? AND host = ?", (order.server_id, order.host)
            )

    def close(self) -> None:
        """See the protocol."""
        with self._lock:
            self._state.close()
