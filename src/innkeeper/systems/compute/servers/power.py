"""Servers switched on and off where they are: stop, start, reboot, pause, suspend and back.

Always true: until its agent has confirmed, a server keeps the status that it had. What fails,
or is not confirmed in time, leaves it in that status, and the action says why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import OrderKind, Power, Status, Task
from innkeeper.domain.moves import ActionName, Asker
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers import actions, servers
from innkeeper.systems.compute.servers.results import Result, told

POWER_OF: Mapping[str, int] = {
    Status.ACTIVE: Power.RUNNING,
    Status.SHUTOFF: Power.SHUTDOWN,
    Status.PAUSED: Power.PAUSED,
    Status.SUSPENDED: Power.SHUTDOWN,
    Status.SHELVED: Power.SHUTDOWN,
    Status.SHELVED_OFFLOADED: Power.NO_STATE,
}
"""How a server in this status is powered."""


@dataclass(frozen=True, slots=True)
class Switch:
    """One thing to do: what it is called, in which states, and what the server is then."""

    action: str
    kind: str
    statuses: Collection[str]
    task: str
    status: str
    tasks: Collection[str | None] = actions.IDLE
    how: str | None = None


STOP = Switch(
    ActionName.STOP,
    OrderKind.STOP,
    (Status.ACTIVE, Status.ERROR),
    Task.POWERING_OFF,
    Status.SHUTOFF,
)
START = Switch(
    ActionName.START, OrderKind.START, (Status.SHUTOFF,), Task.POWERING_ON, Status.ACTIVE
)
REBOOT_SOFT = Switch(
    ActionName.REBOOT, OrderKind.REBOOT, (Status.ACTIVE,), Task.REBOOTING, Status.ACTIVE, how="soft"
)
REBOOT_HARD = Switch(
    ActionName.REBOOT,
    OrderKind.REBOOT,
    (Status.ACTIVE, Status.SHUTOFF, Status.PAUSED, Status.SUSPENDED, Status.ERROR),
    Task.REBOOTING_HARD,
    Status.ACTIVE,
    # It is the way out of whatever hangs.
    tasks=(
        None,
        Task.REBOOTING,
        Task.REBOOTING_HARD,
        Task.PAUSING,
        Task.UNPAUSING,
        Task.SUSPENDING,
        Task.RESUMING,
    ),
    how="hard",
)
PAUSE = Switch(ActionName.PAUSE, OrderKind.PAUSE, (Status.ACTIVE,), Task.PAUSING, Status.PAUSED)
UNPAUSE = Switch(
    ActionName.UNPAUSE, OrderKind.UNPAUSE, (Status.PAUSED,), Task.UNPAUSING, Status.ACTIVE
)
SUSPEND = Switch(
    ActionName.SUSPEND, OrderKind.SUSPEND, (Status.ACTIVE,), Task.SUSPENDING, Status.SUSPENDED
)
RESUME = Switch(
    ActionName.RESUME, OrderKind.RESUME, (Status.SUSPENDED,), Task.RESUMING, Status.ACTIVE
)
SWITCHES = (STOP, START, REBOOT_SOFT, REBOOT_HARD, PAUSE, UNPAUSE, SUSPEND, RESUME)
KINDS = frozenset(each.kind for each in SWITCHES)
_BY_TASK = {(each.kind, each.task): each for each in SWITCHES}


def stop(tx: Tx, uuid: str, asker: Asker, *, now: datetime) -> None:
    """Shut a server down. All of these raise what :func:`actions.admit` does."""
    _switch(tx, STOP, uuid, asker, now)


def start(tx: Tx, uuid: str, asker: Asker, *, now: datetime) -> None:
    """Start a server that was shut down."""
    _switch(tx, START, uuid, asker, now)


def reboot(tx: Tx, uuid: str, asker: Asker, *, is_hard: bool, now: datetime) -> None:
    """Ask a server to start anew, or switch it off and on whatever it is doing."""
    _switch(tx, REBOOT_HARD if is_hard else REBOOT_SOFT, uuid, asker, now)


def pause(tx: Tx, uuid: str, asker: Asker, *, now: datetime) -> None:
    """Freeze a server; it stays in its host's memory."""
    _switch(tx, PAUSE, uuid, asker, now)


def unpause(tx: Tx, uuid: str, asker: Asker, *, now: datetime) -> None:
    """Let a paused server go on."""
    _switch(tx, UNPAUSE, uuid, asker, now)


def suspend(tx: Tx, uuid: str, asker: Asker, *, now: datetime) -> None:
    """Write a server's memory to its host's disk, and stop it."""
    _switch(tx, SUSPEND, uuid, asker, now)


def resume(tx: Tx, uuid: str, asker: Asker, *, now: datetime) -> None:
    """Let a suspended server go on."""
    _switch(tx, RESUME, uuid, asker, now)


def _switch(tx: Tx, switch: Switch, uuid: str, asker: Asker, now: datetime) -> None:
    server = actions.admit(tx, uuid, asker, switch.statuses, switch.tasks)
    host = servers.demand_host(server)
    actions.begin(tx, server, switch.action, asker, {"task_state": switch.task}, now)
    body = {} if switch.how is None else {"how": switch.how}
    body = {**actions.order_body(server), **body}
    is_told = actions.tell(
        tx, host, server.uuid, switch.kind, body, now, request_id=asker.request_id
    )
    assert is_told, "a host with a server on it is not forgotten"


def follow(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Take what an agent says of such an order."""
    server = server_rows.by_uuid(tx, order.server_uuid)
    actions.end(
        tx, order.server_uuid, order.request_id, None if result.is_ok else told(order, result), now
    )
    if server is None or server.task_state is None:
        return
    switch = _BY_TASK.get((order.kind, server.task_state))
    if switch is None:
        # A hard reboot came after it, or the server is to go.
        return
    values: dict[str, Any] = {"task_state": None}
    if result.is_ok:
        values |= {"status": switch.status, "power_state": POWER_OF[switch.status], "fault": None}
    else:
        values |= {"fault": servers.fault(told(order, result), now, result.message)}
    servers.write(tx, server, values, now)
