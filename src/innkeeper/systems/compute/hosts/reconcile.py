"""Compare the servers that agents find on their hosts with the database, and correct differences.

An agent reports its hosts' servers when it starts, before it fetches orders:

- If a server was deleted or moved while the agent was down, the agent gets a destroy order. But if
  an open migration explains the copy on the host, the agent gets no order.
- An unknown server is left alone, returned to the caller and stored for audits. The agent may
  belong to another cloud, or the database may come from a backup.
- A server that the host no longer has goes to ERROR. The server keeps its host and its
  allocations, because the server may reappear. The server is not rebuilt, because a new build
  would lose its disks.
- A lost server that has reappeared gets its former status back.
- If the reported power state differs from the recorded power state, the server gets the status
  that matches the reported state.

A server in BUILD or with a task is left alone, because its order is still pending.

Always true: reconciling is idempotent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Power, Status
from innkeeper.domain.hosts import HostReport
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.domain.orders import OrderKind
from innkeeper.store import by_ids
from innkeeper.store.queries.compute import hosts, migrations, orders, unknown_servers
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers.power import POWER_OF
from innkeeper.systems.compute.servers.servers import fault

LOST = "The host came back without this server."
"""The fault of a server that its host has lost.

If the server reappears, this fault shows that it was lost before."""
WAS = "was"
"""The key of the server's former status in the fault of a lost server."""
STATUS_OF = {
    Power.RUNNING: Status.ACTIVE,
    Power.PAUSED: Status.PAUSED,
    Power.SHUTDOWN: Status.SHUTOFF,
}
"""The status of a server, by its power state."""
CONSISTENT = {
    Status.ACTIVE: (Status.ACTIVE,),
    Status.SHUTOFF: (Status.SHUTOFF,),
    Status.PAUSED: (Status.PAUSED,),
    # A suspended server's memory is on disk, so the server appears to be shut down.
    Status.SUSPENDED: (Status.SHUTOFF, Status.PAUSED),
}
"""The statuses that an agent may report for each recorded status. Servers with any other recorded
status are not compared."""
MUST_BE_THERE = frozenset({*CONSISTENT, Status.VERIFY_RESIZE, Status.SHELVED})


def servers(
    tx: Tx, agent_id: AgentId, reports: Sequence[HostReport], now: datetime
) -> dict[str, tuple[ServerId, ...]]:
    """Reconcile the servers of the reported hosts. Return the unknown servers by host name."""
    present = {each.name: set(each.servers) for each in reports if each.servers is not None}
    if not present:
        return {}
    expected: dict[str, dict[str, Any]] = {name: {} for name in present}
    for row in hosts.servers_on(tx, present.keys()):
        expected[row.host][row.uuid] = row
    strays = [
        (name, uuid)
        for name in sorted(present)
        for uuid in sorted(present[name] - expected[name].keys())
    ]
    known = server_rows.ever_known(tx, [uuid for _, uuid in strays])
    in_moves = _in_moves(tx, known)
    gone = [each for each in strays if each[1] in known and each not in in_moves]
    _destroy(tx, agent_id, gone, now)
    off = {each.name: each.not_running for each in reports}
    for name, should in expected.items():
        for uuid, row in should.items():
            values = _corrections(row, _power(ServerId(uuid), present[name], off[name]), now)
            if values:
                values["updated_at"] = now
                server_rows.change(tx, uuid, row.updated_at, values)
    unknown: dict[str, list[ServerId]] = {}
    for host, uuid in strays:
        if uuid not in known:
            unknown.setdefault(host, []).append(uuid)
    unknown_servers.keep(tx, sorted(present), unknown, now)
    return {host: tuple(uuids) for host, uuids in unknown.items()}


def _destroy(
    tx: Tx, agent_id: AgentId, strays: Sequence[tuple[str, ServerId]], now: datetime
) -> None:
    if not strays:
        return
    ordered = {
        (each.host, each.server_uuid)
        for each in orders.waiting_about(tx, [uuid for _, uuid in strays])
        if each.kind == OrderKind.DESTROY and each.agent_id == agent_id
    }
    new = [
        NewOrder(agent_id, host, uuid, OrderKind.DESTROY, {})
        for host, uuid in strays
        if (host, uuid) not in ordered
    ]
    orders.add(tx, new, now)


def _in_moves(tx: Tx, uuids: Collection[str]) -> set[tuple[str, ServerId]]:
    """Return the hosts of these servers' open migrations, as pairs of (host, server id).

    Both the source and the destination of a migration are included.
    """
    return {
        (host, each.server_uuid)
        for part in by_ids.parts(uuids)
        for each in migrations.open_ones(tx, part)
        for host in (each.source_host, each.dest_host)
        if host is not None
    }


UNREPORTED = -1
"""The power state of a server on its host, if the host's agent does not report power states."""


def _power(
    uuid: ServerId, present: Collection[ServerId], off: Mapping[ServerId, int] | None
) -> int | None:
    """Return a server's power state, or ``None`` if the server is not among ``present``."""
    if uuid not in present:
        return None
    return UNREPORTED if off is None else off.get(uuid, Power.RUNNING)


def _corrections(row: Any, power: int | None, now: datetime) -> dict[str, Any]:
    """Return the new values of the columns that must change in a server's row.

    ``power`` is the result of :func:`_power`.
    """
    if row.task_state is not None:
        return {}
    is_lost = row.status == Status.ERROR and (row.fault or {}).get("message") == LOST
    if row.status in MUST_BE_THERE and power is None:
        return {
            "status": Status.ERROR,
            "power_state": Power.NO_STATE,
            "fault": {**fault(LOST, now), WAS: row.status},
        }
    if is_lost and power is not None:
        was = row.fault.get(WAS, Status.ACTIVE)
        power_state = POWER_OF.get(was, Power.RUNNING)
        return {"status": was, "power_state": power_state, "fault": None}
    reported = STATUS_OF.get(power) if power is not None else None
    if reported is None or reported in CONSISTENT.get(row.status, (reported,)):
        return {}
    return {"status": reported, "power_state": power}
