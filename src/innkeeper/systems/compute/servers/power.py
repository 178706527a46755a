"""Carry out power actions: stop, start, reboot, pause, unpause, suspend and resume.

Always true: a server keeps its status until its agent has confirmed the action. An action that
fails or times out does not change the status, and the reason is recorded. The server stays on its
host.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from innkeeper.domain.compute import Power, Status, Task
from innkeeper.domain.moves import ActionName, Initiator
from innkeeper.domain.orders import OrderKind
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers import actions, servers
from innkeeper.systems.compute.servers.results import Result

POWER_OF: Mapping[str, int] = {
    Status.ACTIVE: Power.RUNNING,
    Status.SHUTOFF: Power.SHUTDOWN,
    Status.PAUSED: Power.PAUSED,
    Status.SUSPENDED: Power.SHUTDOWN,
    Status.SHELVED: Power.SHUTDOWN,
    Status.SHELVED_OFFLOADED: Power.NO_STATE,
}
"""The power state of a server, by its status."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A power action: its name, the kind of its order, and its task and final status.

    ``statuses`` and ``tasks`` are the server's statuses and tasks in which the action may begin.
    """

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
    # A hard reboot is permitted during other power actions, because these actions may hang.
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


def _switch(switch: Switch, tx: Tx, uuid: str, initiator: Initiator, *, now: datetime) -> None:
    server = actions.admit(tx, uuid, initiator, switch.statuses, switch.tasks)
    actions.begin(tx, server, switch.action, initiator, {"task_state": switch.task}, now)
    body = actions.order_body(server) | ({} if switch.how is None else {"how": switch.how})
    actions.order_home(tx, server, switch.kind, body, initiator.request_id, now)


# These functions are called with (tx, uuid, initiator, now=...). They raise the errors of
# actions.admit.
stop = partial(_switch, STOP)
start = partial(_switch, START)
pause = partial(_switch, PAUSE)
unpause = partial(_switch, UNPAUSE)
suspend = partial(_switch, SUSPEND)
resume = partial(_switch, RESUME)


def reboot(tx: Tx, uuid: str, initiator: Initiator, *, is_hard: bool, now: datetime) -> None:
    """Restart a server through its operating system, or by a power cycle with ``is_hard``."""
    _switch(REBOOT_HARD if is_hard else REBOOT_SOFT, tx, uuid, initiator, now=now)


def apply(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of a power order."""
    server = server_rows.by_uuid(tx, order.server_uuid)
    actions.end_by(tx, order, result, now)
    if server is None or server.task_state is None:
        return
    switch = _BY_TASK.get((order.kind, server.task_state))
    if switch is None:
        # A hard reboot replaced the action, or the server is being deleted.
        return
    values: dict[str, Any] = {"task_state": None}
    if result.is_ok:
        values |= {"status": switch.status, "power_state": POWER_OF[switch.status], "fault": None}
    else:
        values |= {"fault": actions.fault_of(order, result, now)}
    servers.write(tx, server, values, now)
