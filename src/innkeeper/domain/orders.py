"""The kinds of orders to agents, and the state that each order must bring about.

The service and the agents use this list. The reference of the agents' protocol repeats it for
agents in other languages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.ids import AgentId, ServerId


class OrderKind:
    """The kinds of orders, and the required state after each order.

    If an order fails, the driver of the agent must leave the server as it was before the order, if
    possible. ``power_state`` in an order's body is the required power state: 1 running, 3 paused, 4
    shut down.
    """

    BUILD = "build"
    """The server is on the host, and is running."""
    DESTROY = "destroy"
    """Nothing of the server is left on the host. Remains of a move are gone, too."""

    STOP = "stop"
    """The server is shut down."""
    START = "start"
    """The server is running."""
    REBOOT = "reboot"
    """The server was restarted. ``how`` is ``soft`` or ``hard``. After a hard reboot, the server is
    running even if it was not running before."""
    PAUSE = "pause"
    """The server is not running, and stays in memory."""
    UNPAUSE = "unpause"
    """The server is running, and goes on from the point at which it was paused."""
    SUSPEND = "suspend"
    """The server is not running, and its memory is saved on disk."""
    RESUME = "resume"
    """The server is running, and goes on from the point at which it was suspended."""

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
    """The live migration ``migration_id`` is aborted or never starts, and the server stays on this
    host. The order fails if the server has already moved."""
    HURRY = "hurry"
    """The live migration ``migration_id`` is forced to complete, if necessary by pausing the
    server."""

    CHANGES = frozenset(
        {STOP, START, REBOOT, PAUSE, UNPAUSE, SUSPEND, RESUME}
        | {DEPART, ARRIVE, RETURN, RESIZE, EXPECT, SEND, EVACUATE}
        | {SHELVE, OFFLOAD, UNSHELVE}
    )
    """Orders that change an existing server."""

    ATTACH_VOLUME = "attach-volume"
    """The server on this host uses the volume in the body. The device name is ``device`` if
    possible. If ``mode`` is ``ro``, the volume is read-only. ``pool`` and ``host`` tell where
    the volume is."""
    DETACH_VOLUME = "detach-volume"
    """The server on this host does not use the volume in the body, and nothing is left of the
    volume's connection."""
    MAKE_VOLUME = "make-volume"
    """The volume exists on the ``pool``, with ``size_gb``. It has the data of ``image_id`` or of
    ``source_volume_id``, or is empty. ``server_id`` is the id of the volume."""
    GROW_VOLUME = "grow-volume"
    """The volume has ``size_gb`` and its old data, even if a server uses it. ``server_id`` is the
    id of the volume."""
    DROP_VOLUME = "drop-volume"
    """Nothing of the volume is left on the pool. ``server_id`` is the id of the volume."""

    VOLUMES = frozenset({ATTACH_VOLUME, DETACH_VOLUME, MAKE_VOLUME, GROW_VOLUME, DROP_VOLUME})
    """Orders about volumes. Orders that bring a server to a host list the server's ``volumes`` in
    their bodies. Each volume has the form of the body of ``attach-volume``. After such an order,
    the server uses these volumes. After ``destroy``, ``offload`` and ``send``, the host uses
    none of the listed volumes."""
    BESIDE = frozenset({ABORT, HURRY})
    """Orders that are sent while another order of the same server runs, because they affect the
    running order."""


class OrderStatus:
    """Statuses of orders. A ``waiting`` order is sent again until its result is reported."""

    WAITING = "waiting"
    HELD = "held"
    """The order is not sent yet: it waits until the new volumes of its server are made."""
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A durable order to an agent. Orders are idempotent."""

    id: int
    agent_id: AgentId
    host: str
    server_uuid: ServerId
    kind: str
    body: Mapping[str, Any]
    status: str
    created_at: datetime
