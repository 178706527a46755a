"""The protocol that an agent's driver implements.

Every order may arrive twice: after a crash the service sends again what was not reported. So
``build`` of a server that exists and ``destroy`` of one that does not simply return, and the
other orders are idempotent too. Orders for different servers come from several threads at once.
Orders for one server come in sequence, except those that interrupt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class DriverFailed(Exception):
    """An order could not be carried out. Only administrators see the message."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host as its driver sees it; see the reference of the agents' protocol.

    ``inventories`` has the total of each resource class, and optionally its other fields.
    """

    name: str
    inventories: Mapping[str, Mapping[str, Any]]
    traits: Sequence[str] = ()
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    availability_zone: str | None = None
    host_type: str = "unknown"
    host_version: int = 0
    host_ip: str = "127.0.0.1"
    cpu_facts: Mapping[str, Any] = field(default_factory=dict)
    provider_uuid: str | None = None
    booted_at: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What to do with one server on one host."""

    order_id: int
    kind: str
    host: str
    server_id: str
    body: Mapping[str, Any]


class OrderName:
    """The kinds of orders, and what must be true once each was carried out.

    A driver that raises :class:`DriverFailed` leaves the server as it was before the order, if
    that is possible. ``power_state`` in an order's body is the power state to reach: 1 running,
    3 paused, 4 shut down.
    """

    BUILD = "build"
    """The server is on the host and runs."""
    DESTROY = "destroy"
    """Nothing of the server is on the host, not even what it left when it moved."""

    STOP = "stop"
    """It is shut down."""
    START = "start"
    """It runs."""
    REBOOT = "reboot"
    """It was restarted; ``how`` is ``soft`` or ``hard``. After a hard one it runs in any case."""
    PAUSE = "pause"
    """It does not run, and is in memory."""
    UNPAUSE = "unpause"
    """It runs, from where it was."""
    SUSPEND = "suspend"
    """It does not run, and its memory is on disk."""
    RESUME = "resume"
    """It runs, from where it was."""
    REBUILD = "rebuild"
    """It runs on a fresh disk, made of the body's image."""

    DEPART = "depart"
    """It is shut down, and its disks can be fetched by ``dest_host``."""
    ARRIVE = "arrive"
    """It is here with the disks from ``source_host``, with the body's flavor, powered as the
    body says. What is on the source is left alone."""
    RETURN = "return"
    """It is here as before ``depart``, with the body's flavor and power state."""
    RESIZE = "resize"
    """It is here with the body's flavor."""
    EXPECT = "expect"
    """The host is ready for the server to be sent by ``source_host``."""
    SEND = "send"
    """It runs on ``dest_host``, and nothing of it is here. If that fails, it runs here."""
    EVACUATE = "evacuate"
    """It is here, rebuilt or from shared disks, with the body's power state."""
    SHELVE = "shelve"
    """It is shut down here, and its image is where all hosts can fetch it."""
    OFFLOAD = "offload"
    """Nothing of it is here; its image stays."""
    UNSHELVE = "unshelve"
    """It runs here, from what was shelved here or from its image, which is kept. If the result
    does not arrive in time, ``offload`` follows and another host gets the order."""

    ABORT = "abort"
    """``send`` of that ``migration_id`` ends, or never starts, and the server stays. Raises
    :class:`DriverFailed` if the server is gone."""
    HURRY = "hurry"
    """``send`` of that ``migration_id`` ends soon, if necessary by pausing the server."""

    CHANGES = frozenset(
        {STOP, START, REBOOT, PAUSE, UNPAUSE, SUSPEND, RESUME, REBUILD}
        | {DEPART, ARRIVE, RETURN, RESIZE, EXPECT, SEND, EVACUATE}
        | {SHELVE, OFFLOAD, UNSHELVE}
    )
    BESIDE = frozenset({ABORT, HURRY})
    """These do not wait for the server's other orders: they concern the one that runs."""


class Driver(Protocol):
    """Drives the hosts of one agent; :class:`OrderName` defines what each order means."""

    def hosts(self) -> Sequence[HostFacts]:
        """All hosts, as they are now."""

    def servers(self) -> Mapping[str, Sequence[str]]:
        """The ids of the servers that are on the hosts now, by host."""

    def not_running(self) -> Mapping[str, Mapping[str, int]]:
        """The power states of the servers that do not run, by host and id: 3 paused, 4 shut
        down."""

    def build(self, order: Order) -> None:
        """Build the server. Raises :class:`DriverFailed`, leaving nothing behind."""

    def destroy(self, order: Order) -> None:
        """Remove the server. Raises :class:`DriverFailed` if it is still there."""

    def change(self, order: Order) -> None:
        """Carry out one of :data:`OrderName.CHANGES`. Raises :class:`DriverFailed`."""

    def interrupt(self, order: Order) -> None:
        """Carry out one of :data:`OrderName.BESIDE` while another order runs. Raises
        :class:`DriverFailed`."""

    def close(self) -> None:
        """Release all resources; no order follows."""
