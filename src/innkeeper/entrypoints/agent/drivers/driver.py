"""The protocol that an agent's driver implements.

Every order may arrive twice: after a crash, the service again sends all orders without a reported
result. So all orders must be idempotent: ``build`` does nothing if the server exists, and
``destroy`` does nothing if it does not. Orders for different servers come from several threads at
once. Orders for one server come in sequence, except orders that interrupt a running one.
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

    Each inventory has a ``total``, and optionally the other fields of an inventory.
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
    """The kinds of orders, and the required state after each.

    A driver that raises :class:`DriverFailed` must leave the server as it was before the order,
    if possible. ``power_state`` in an order's body is the required power state: 1 running,
    3 paused, 4 shut down.
    """

    BUILD = "build"
    """The server is on the host, and is running."""
    DESTROY = "destroy"
    """Nothing of the server is left on the host, not even leftovers of a move."""

    STOP = "stop"
    """The server is shut down."""
    START = "start"
    """The server is running."""
    REBOOT = "reboot"
    """The server was restarted; ``how`` is ``soft`` or ``hard``. After a hard reboot, the server is
    running, whatever its power state was."""
    PAUSE = "pause"
    """The server is not running, and stays in memory."""
    UNPAUSE = "unpause"
    """The server is running, from where it was paused."""
    SUSPEND = "suspend"
    """The server is not running, and its memory is saved on disk."""
    RESUME = "resume"
    """The server is running, from where it was suspended."""
    REBUILD = "rebuild"
    """The server is running on a new disk, made from the image given in the body."""

    DEPART = "depart"
    """The server is shut down, and ``dest_host`` can fetch its disks."""
    ARRIVE = "arrive"
    """The server is on this host with the disks from ``source_host``, and has the flavor and the
    power state given in the body. The source is left unchanged."""
    RETURN = "return"
    """The server is as before ``depart``, with the flavor and power state given in the body."""
    RESIZE = "resize"
    """The server has the flavor given in the body."""
    EXPECT = "expect"
    """The host is ready to receive the server from ``source_host``."""
    SEND = "send"
    """The server is running on ``dest_host``, and nothing of the server is left on this host. After
    a failure, the server is running on this host."""
    EVACUATE = "evacuate"
    """The server is on this host, rebuilt or using its shared disks, with the power state given
    in the body."""
    SHELVE = "shelve"
    """The server is shut down on this host, and all hosts can fetch its image."""
    OFFLOAD = "offload"
    """Nothing of the server is left on this host. Its image is kept."""
    UNSHELVE = "unshelve"
    """The server is running on this host. A server that was shelved here was started. Any other
    server was built from its image. The image is kept. If the result does not arrive in time,
    ``offload`` follows and another host gets the order."""

    ABORT = "abort"
    """The live migration ``migration_id`` is aborted, or never starts, and the server stays.
    Raises :class:`DriverFailed` if the server has already moved."""
    HURRY = "hurry"
    """The live migration ``migration_id`` is forced to complete, if necessary by pausing the
    server."""

    CHANGES = frozenset(
        {STOP, START, REBOOT, PAUSE, UNPAUSE, SUSPEND, RESUME, REBUILD}
        | {DEPART, ARRIVE, RETURN, RESIZE, EXPECT, SEND, EVACUATE}
        | {SHELVE, OFFLOAD, UNSHELVE}
    )
    ATTACH_VOLUME = "attach-volume"
    """The server on this host uses the volume in the body, under the ``device`` if possible, and
    read-only if the ``mode`` is ``ro``. ``pool`` and ``host`` tell where the volume is."""
    DETACH_VOLUME = "detach-volume"
    """The server on this host does not use the volume in the body, and nothing of its connection is
    left."""
    MAKE_VOLUME = "make-volume"
    """The volume exists on the ``pool``, with ``size_gb``. It has the data of ``image_id`` or of
    ``source_volume_id``, or is empty. ``server_id`` is the id of the volume."""
    GROW_VOLUME = "grow-volume"
    """The volume has ``size_gb`` and its old data, even if a server uses it. ``server_id`` is the
    id of the volume."""
    DROP_VOLUME = "drop-volume"
    """Nothing of the volume is left on the pool. ``server_id`` is the id of the volume."""

    VOLUMES = frozenset({ATTACH_VOLUME, DETACH_VOLUME, MAKE_VOLUME, GROW_VOLUME, DROP_VOLUME})
    """Orders about volumes. Orders that bring a server to a host list its ``volumes`` in their
    bodies, each in the form of the body of ``attach-volume``; the server uses these volumes, too,
    after the order. After ``destroy``, ``offload`` and ``send``, the host uses none of them."""
    BESIDE = frozenset({ABORT, HURRY})
    """Orders that do not wait for the server's other orders, because they affect the running
    one."""


class Driver(Protocol):
    """Drives the hosts of one agent; :class:`OrderName` defines what each order means."""

    def hosts(self) -> Sequence[HostFacts]:
        """Return all hosts in their current state."""

    def servers(self) -> Mapping[str, Sequence[str]]:
        """Return the ids of the servers that are now on each host."""

    def not_running(self) -> Mapping[str, Mapping[str, int]]:
        """Return the power states of the servers that are not running, by host and server id.

        3 means paused, and 4 shut down.
        """

    def build(self, order: Order) -> None:
        """Build the server. If it raises :class:`DriverFailed`, nothing of the server is left."""

    def destroy(self, order: Order) -> None:
        """Remove the server. Raises :class:`DriverFailed` if the server is still there."""

    def change(self, order: Order) -> None:
        """Carry out one of :data:`OrderName.CHANGES`. Raises :class:`DriverFailed`."""

    def change_volume(self, order: Order) -> None:
        """Carry out one of :data:`OrderName.VOLUMES`. Raises :class:`DriverFailed`."""

    def interrupt(self, order: Order) -> None:
        """Carry out one of :data:`OrderName.BESIDE` while another order runs. Raises
        :class:`DriverFailed`."""

    def close(self) -> None:
        """Release all resources. No order follows."""
