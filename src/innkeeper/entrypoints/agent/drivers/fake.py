"""A driver without machines, which only records servers, their power states and their volumes.

Always true: the effect of an order is written to a file before the order is reported as done. So an
agent that was killed still has its servers after a restart.
"""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from innkeeper.domain.orders import OrderKind
from innkeeper.entrypoints.agent.drivers.driver import DriverFailed, HostFacts, Order
from innkeeper.entrypoints.agent.drivers.fake_state import PAUSED, RUNNING, SHUT_DOWN, FakeState

NAME = "fake"
FAIL_KEY = "fail-"
"""An order fails if its server has a metadata key that consists of this prefix and the order's
kind. The value is the message."""
LOOK_S = 0.05
"""The seconds between two checks of a migration for an abort or a forced completion."""
POWER: Mapping[str, int] = {
    OrderKind.STOP: SHUT_DOWN,
    OrderKind.START: RUNNING,
    OrderKind.REBOOT: RUNNING,
    OrderKind.PAUSE: PAUSED,
    OrderKind.UNPAUSE: RUNNING,
    OrderKind.SUSPEND: SHUT_DOWN,
    OrderKind.RESUME: RUNNING,
    OrderKind.DEPART: SHUT_DOWN,
    OrderKind.SHELVE: SHUT_DOWN,
}
"""The power state of a server after each kind of order. The server must be on the host."""
COMING = frozenset({OrderKind.ARRIVE, OrderKind.EXPECT, OrderKind.EVACUATE, OrderKind.UNSHELVE})
"""Orders that bring a server to a host."""
SLOW = COMING - {OrderKind.EXPECT}
"""Orders that bring a server to a host and copy much data. ``send`` also copies much data."""
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
    """The number, size and behavior of the hosts.

    ``zones`` are assigned to the hosts in turn. ``fail_builds_on`` is a shell pattern for the
    names of hosts on which builds fail.
    """

    hosts: int = 1
    host_prefix: str = "host-"
    zones: Sequence[str] = ()
    vcpus: int = 32
    memory_mb: int = 131072
    disk_gb: int = 2000
    build_time_s: float = 0.0
    move_time_s: float = 0.0
    fail_builds_on: str | None = None
    traits: Sequence[str] = TRAITS
    capabilities: Mapping[str, Any] = field(
        default_factory=lambda: {"cpu_mhz": 2600, "cpu_arch": "x86_64", "disk_type": "ssd"}
    )


class FakeDriver:
    """Implements :class:`innkeeper.entrypoints.agent.drivers.driver.Driver`."""

    def __init__(self, options: FakeOptions, state_dir: Path, wait: Callable[[float], Any]) -> None:
        self._options = options
        self._wait = wait
        self._names = [f"{options.host_prefix}{n}" for n in range(1, options.hosts + 1)]
        self._known = frozenset(self._names)
        self._state = FakeState(state_dir)
        # Ids of migrations that are forced to complete.
        self._hurried: set[str] = set()
        self._lock = threading.Lock()

    def hosts(self) -> Sequence[HostFacts]:
        options = self._options
        zones: Sequence[str | None] = options.zones or (None,)
        inventories = {"VCPU": {"total": options.vcpus}, "MEMORY_MB": {"total": options.memory_mb}}
        if options.disk_gb:
            # If a host has no disks of its own, it has no disk inventory. Servers then get disks
            # from a shared pool.
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
        found: dict[str, list[str]] = {name: [] for name in self._names}
        for host, server_id, _ in self._state.all():
            # If there are fewer hosts than before, the servers of the missing hosts are kept
            # until these hosts return.
            if host in found:
                found[host].append(server_id)
        return found

    def not_running(self) -> Mapping[str, Mapping[str, int]]:
        found: dict[str, dict[str, int]] = {name: {} for name in self._names}
        for host, server_id, power in self._state.all():
            if host in found and power != RUNNING:
                found[host][server_id] = power
        return found

    def build(self, order: Order) -> None:
        options = self._options
        self._demand_host(order)
        if options.build_time_s > 0:
            self._wait(options.build_time_s)
        _fail_if_requested(order)
        if options.fail_builds_on and fnmatch.fnmatchcase(order.host, options.fail_builds_on):
            raise DriverFailed(f"Builds on {order.host} fail because of --fail-builds-on.")
        self._state.put(order.server_id, order.host, RUNNING)
        self._connect_all(order)

    def _connect_all(self, order: Order) -> None:
        """Connect the volumes that the order lists, and disconnect all other volumes."""
        listed = {str(each["volume_id"]) for each in order.body.get("volumes", ())}
        for volume in self._state.connections(order.server_id, order.host):
            if volume not in listed:
                self._state.disconnect(order.server_id, order.host, volume)
        for volume in sorted(listed):
            self._state.connect(order.server_id, order.host, volume)

    def destroy(self, order: Order) -> None:
        self._state.drop(order.server_id, order.host)

    def change(self, order: Order) -> None:
        self._demand_host(order)
        if order.kind == OrderKind.SEND:
            self._send(order)
            return
        if order.kind in SLOW and self._options.move_time_s > 0:
            self._wait(self._options.move_time_s)
        _fail_if_requested(order)
        if order.kind == OrderKind.OFFLOAD:
            self._state.drop(order.server_id, order.host)
            return
        power = POWER.get(order.kind) or _power_in(order)
        if order.kind in COMING:
            self._state.put(order.server_id, order.host, power)
        if order.kind in COMING or order.kind in (OrderKind.DEPART, OrderKind.RETURN):
            # An order to depart lists no volumes, so this disconnects all of them.
            self._connect_all(order)
        if not self._state.switch(order.server_id, order.host, power):
            raise DriverFailed(f"The server is not on {order.host}.")

    def change_volume(self, order: Order) -> None:
        self._demand_host(order)
        _fail_if_requested(order)
        state, volume = self._state, str(order.body.get("volume_id"))
        if order.kind == OrderKind.MAKE_VOLUME:
            state.make_volume(order.server_id, order.body.get("size_gb"))
        elif order.kind == OrderKind.GROW_VOLUME:
            state.grow_volume(order.server_id, order.body.get("size_gb"))
        elif order.kind == OrderKind.DROP_VOLUME:
            state.drop_volume(order.server_id)
        elif order.kind == OrderKind.DETACH_VOLUME:
            state.disconnect(order.server_id, order.host, volume)
        elif not state.connect(order.server_id, order.host, volume):
            raise DriverFailed(f"The server is not on {order.host}.")

    def connections(self, host: str, server_id: str) -> Sequence[str]:
        """Return the volumes that a server uses on a host, for tests."""
        return self._state.connections(server_id, host)

    def _send(self, order: Order) -> None:
        migration = _migration_of(order)
        remaining_s = self._options.move_time_s
        while remaining_s > 0 and not self._is_over(migration):
            self._wait(min(LOOK_S, remaining_s))
            remaining_s -= LOOK_S
        _fail_if_requested(order)
        # If the server is no longer on the host, an earlier order has already sent it, so this
        # succeeds.
        if not self._state.send(order.server_id, order.host, migration):
            raise DriverFailed("The migration was aborted.")

    def _is_over(self, migration: str) -> bool:
        with self._lock:
            is_hurried = migration in self._hurried
        return is_hurried or self._state.is_stopped(migration)

    def interrupt(self, order: Order) -> None:
        _fail_if_requested(order)
        migration = _migration_of(order)
        if order.kind == OrderKind.HURRY:
            with self._lock:
                self._hurried.add(migration)
        elif not self._state.stop(order.server_id, order.host, migration):
            raise DriverFailed(f"The server has left {order.host}.")

    def _demand_host(self, order: Order) -> None:
        if order.host not in self._known:
            raise DriverFailed(f"This agent has no host {order.host}.")

    def close(self) -> None:
        self._state.close()


def _fail_if_requested(order: Order) -> None:
    metadata = order.body.get("metadata")
    message = metadata.get(FAIL_KEY + order.kind) if isinstance(metadata, Mapping) else None
    if message is not None:
        raise DriverFailed(f"The server's metadata makes the {order.kind} fail: {message}")


def _power_in(order: Order) -> int:
    power = order.body.get("power_state", RUNNING)
    return power if power in (RUNNING, PAUSED, SHUT_DOWN) else RUNNING


def _migration_of(order: Order) -> str:
    return str(order.body.get("migration_id"))
