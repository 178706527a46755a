"""Bring together the servers that hosts have and those that should be there.

An agent names its hosts' servers when it starts, before it asks for work. Then

- a server that was deleted or placed elsewhere while the agent was away gets an order to be
  destroyed, unless a migration that is not over has left it there;
- a server that nobody here has ever heard of is left alone, told to the caller, and kept for
  audits: an agent may have been pointed at another cloud, or the database may come from a
  backup;
- a server that the host no longer has goes to ERROR with a fault that says so. It keeps its
  allocation and its host, because both may come back: nothing is built anew, since what was on
  the server would be lost without anybody having decided it;
- a server in that state that is there again is what it was before;
- a server that is powered otherwise than is known here is what its host says.

A server in BUILD, and one to which something is being done, is left alone: its order still
waits and will be given again.

Always true: doing this twice has the effect of once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import OrderKind, Power, Status
from innkeeper.domain.hosts import HostReport
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.store import by_ids
from innkeeper.store.queries.compute import hosts, migrations, orders, unknown_servers
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers.power import POWER_OF
from innkeeper.systems.compute.servers.servers import fault

LOST = "The host came back without this server."
"""The fault of a server that its host lost; also how it is known again if it turns up."""
WAS = "was"
"""In the fault of such a server: its status until then."""
SAID = {Power.RUNNING: Status.ACTIVE, Power.PAUSED: Status.PAUSED, Power.SHUTDOWN: Status.SHUTOFF}
"""What a server is by its power state, if nothing else is known of it."""
MAY_SAY = {
    Status.ACTIVE: (Status.ACTIVE,),
    Status.SHUTOFF: (Status.SHUTOFF,),
    Status.PAUSED: (Status.PAUSED,),
    # Its memory is on disk, which looks like being off.
    Status.SUSPENDED: (Status.SHUTOFF, Status.PAUSED),
}
"""By status what a power state may say without any contradiction; others say nothing here."""
MUST_BE_THERE = frozenset(
    {
        Status.ACTIVE,
        Status.SHUTOFF,
        Status.PAUSED,
        Status.SUSPENDED,
        Status.VERIFY_RESIZE,
        Status.SHELVED,
    }
)


def servers(
    tx: Tx, agent_id: AgentId, reports: Sequence[HostReport], now: datetime
) -> dict[str, tuple[ServerId, ...]]:
    """Compare what these reports say is on their hosts with what should be.

    Gives by host the servers that nobody here has ever heard of, where there are any.
    """
    there = {each.name: set(each.servers) for each in reports if each.servers is not None}
    if not there:
        return {}
    expected: dict[str, dict[str, Any]] = {name: {} for name in there}
    for row in hosts.servers_on(tx, there.keys()):
        expected[row.host][row.uuid] = row
    strays = [
        (name, uuid)
        for name in sorted(there)
        for uuid in sorted(there[name] - expected[name].keys())
    ]
    known = server_rows.ever_known(tx, [uuid for _, uuid in strays])
    left = _left_behind(tx, known)
    gone = [each for each in strays if each[1] in known and each not in left]
    _destroy(tx, agent_id, gone, now)
    off = {each.name: each.not_running for each in reports}
    for name, should in expected.items():
        for uuid, row in should.items():
            values = _judge(row, _power(ServerId(uuid), there[name], off[name]), now)
            if values:
                values["updated_at"] = now
                server_rows.change(tx, uuid, row.updated_at, values)
    unknown: dict[str, list[ServerId]] = {}
    for host, uuid in strays:
        if uuid not in known:
            unknown.setdefault(host, []).append(uuid)
    unknown_servers.keep(tx, sorted(there), unknown, now)
    return {host: tuple(uuids) for host, uuids in unknown.items()}


def _destroy(
    tx: Tx, agent_id: AgentId, strays: Sequence[tuple[str, ServerId]], now: datetime
) -> None:
    if not strays:
        return
    told = {
        (each.host, each.server_uuid)
        for each in orders.waiting_about(tx, [uuid for _, uuid in strays])
        if each.kind == OrderKind.DESTROY and each.agent_id == agent_id
    }
    new = [
        NewOrder(agent_id, host, uuid, OrderKind.DESTROY, {})
        for host, uuid in strays
        if (host, uuid) not in told
    ]
    orders.add(tx, new, now)


def _left_behind(tx: Tx, uuids: Collection[str]) -> set[tuple[str, ServerId]]:
    """Hosts and servers of which a migration that is not over may have left something there."""
    return {
        (host, each.server_uuid)
        for part in by_ids.parts(uuids)
        for each in migrations.open_ones(tx, part)
        for host in (each.source_host, each.dest_host)
        if host is not None
    }


UNTOLD = -1
"""A server is there, and nothing is said of how it is powered."""


def _power(
    uuid: ServerId, there: Collection[ServerId], off: Mapping[ServerId, int] | None
) -> int | None:
    """How a server is powered on its host; ``None`` if it is not there."""
    if uuid not in there:
        return None
    return UNTOLD if off is None else off.get(uuid, Power.RUNNING)


def _judge(row: Any, power: int | None, now: datetime) -> dict[str, Any]:
    """What is to be written of a server of which its host says this."""
    if row.task_state is not None:
        return {}
    is_lost = row.status == Status.ERROR and _message(row.fault) == LOST
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
    said = SAID.get(power) if power is not None else None
    if said is None or said in MAY_SAY.get(row.status, (said,)):
        return {}
    return {"status": said, "power_state": power}


def _message(kept: Mapping[str, Any] | None) -> str | None:
    return None if kept is None else kept.get("message")
