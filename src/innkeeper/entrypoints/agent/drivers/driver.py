"""What an agent's driver must be able to do.

Every order may come twice: after a crash the service gives again whatever was not reported.
So ``build`` of a server that is there and ``destroy`` of one that is not are done already, and
say so by returning; so is everything else. Different servers' orders come from several threads
at once; those of one server come one after the other, but for those that interrupt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class DriverFailed(Exception):
    """An order could not be carried out. The message is for administrators alone."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host as its driver sees it; see the reference of the agents' protocol.

    ``inventories`` has for each resource class a total, and what else the driver knows of it.
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
    """What an order can ask for, and what must be true when it was carried out.

    Whoever raises :class:`DriverFailed` leaves the server as it was before the order, as far
    as that can be. ``power_state`` in an order's body is how the server is to be powered: 1
    running, 3 paused, 4 shut down.
    """

    BUILD = "build"
    """The server is on the host and runs."""
    DESTROY = "destroy"
    """Nothing of the server is on the host: neither it, nor what it left when it moved."""

    STOP = "stop"
    """It is shut down."""
    START = "start"
    """It runs."""
    REBOOT = "reboot"
    """It has started anew; ``how`` is ``soft`` or ``hard``. By force it runs in any case."""
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
    """It is here as before it was made ready to leave: the body's flavor and power."""
    RESIZE = "resize"
    """It is here with the body's flavor."""
    EXPECT = "expect"
    """The host is ready for the server to be sent by ``source_host``."""
    SEND = "send"
    """It runs on ``dest_host``, and nothing of it is here. Failed, it runs here as before."""
    EVACUATE = "evacuate"
    """It is here, built anew or from disks that are shared, powered as the body says."""
    SHELVE = "shelve"
    """It is shut down here, and an image of it is where all hosts can fetch it."""
    OFFLOAD = "offload"
    """Nothing of it is here; its image stays."""
    UNSHELVE = "unshelve"
    """It runs here: what was shelved here, or made of its image. That stays where it is: if
    nobody hears of this in time, ``offload`` follows, and it is asked for anew."""

    ABORT = "abort"
    """``send`` of that ``migration_id`` ends, or never begins, and the server stays. Raises
    :class:`DriverFailed` if it is gone."""
    HURRY = "hurry"
    """``send`` of that ``migration_id`` ends soon, if need be by pausing the server."""

    CHANGES = frozenset(
        {STOP, START, REBOOT, PAUSE, UNPAUSE, SUSPEND, RESUME, REBUILD}
        | {DEPART, ARRIVE, RETURN, RESIZE, EXPECT, SEND, EVACUATE}
        | {SHELVE, OFFLOAD, UNSHELVE}
    )
    BESIDE = frozenset({ABORT, HURRY})
    """They do not wait for the server's other orders, since they are about one under way."""


class Driver(Protocol):
    """Drives the hosts of one agent. What each order means, :class:`OrderName` says."""

    def hosts(self) -> Sequence[HostFacts]:
        """All hosts, as they are now."""

    def servers(self) -> Mapping[str, Sequence[str]]:
        """The ids of the servers that are on the hosts now, by host."""

    def not_running(self) -> Mapping[str, Mapping[str, int]]:
        """The power states, by host and id, of those servers among them that do not run: 3 for
        a paused one, 4 for one that is shut down."""

    def build(self, order: Order) -> None:
        """Have the server on the host. Raises :class:`DriverFailed`, leaving nothing behind."""

    def destroy(self, order: Order) -> None:
        """Have the server gone. Raises :class:`DriverFailed` if it is still there."""

    def change(self, order: Order) -> None:
        """Carry out an order of :data:`Kind.CHANGES`; raises :class:`DriverFailed`."""

    def interrupt(self, order: Order) -> None:
        """Carry out an order of :data:`Kind.BESIDE`, while another one is being carried out.

        Raises :class:`DriverFailed`.
        """

    def close(self) -> None:
        """Let go of what is open; no order comes any more."""
