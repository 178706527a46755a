"""Servers as such: found, listed, changed, locked, built, failed, deleted.

Always true: what a server holds is freed by the one step that marks it deleted, or failed, and
that step happens once: it expects the row as it was before, and of two that try one finds it
changed. Its allocations, its share of the quota and its row move in one transaction.

May be false: that a deleted server is gone from its host. Where the host is down, the order to
destroy it waits for the agent to come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Host, Locker, Server, Status, Task
from innkeeper.domain.errors import (
    ConcurrentUpdate,
    Forbidden,
    Invalid,
    Locked,
    NotFound,
    WrongState,
)
from innkeeper.domain.ids import ConsumerUuid, ServerId
from innkeeper.domain.listing import ServerSelection
from innkeeper.store import changes
from innkeeper.store.queries.compute import hosts, quota_usages
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.servers import Alive
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import claims

BUSYNESS = frozenset({"status", "task_state", "provider_id"})
"""Columns that say whether a server makes its host work, and which host that is."""
FAULT_CHARS_MAX = 4000
"""Of what an agent tells about a failure; the rest is in its log."""
COUNTED = "counted"
"""Under it a fault has what administrators read in place of its message."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A server with which something did not work on a host, and what is said of it."""

    uuid: ServerId
    host: str
    message: str
    details: str = ""
    """What only administrators are told."""


def get(tx: Tx, uuid: str) -> Server:
    """The server with this id; :class:`NotFound` if there is none, or it is deleted."""
    server = server_rows.by_uuid(tx, uuid)
    if server is None:
        raise NotFound(f"Server {uuid} could not be found.")
    return server


def marker(tx: Tx, uuid: str) -> Server | None:
    """The server that ended somebody's last page; it may have been deleted since."""
    return server_rows.by_uuid(tx, uuid, is_deleted_wanted=True)


def page(tx: Tx, selection: ServerSelection, behind: Server | None = None) -> list[Server]:
    """One page of servers, behind the one that ended the page before."""
    return server_rows.page(tx, selection, behind)


def homes(tx: Tx, servers: Iterable[Server]) -> dict[str, Host]:
    """The hosts that these servers are on, by name."""
    return hosts.by_names(tx, sorted({each.host for each in servers if each.host is not None}))


def change(tx: Tx, uuid: str, values: Mapping[str, Any], now: datetime) -> None:
    """Write what its owner says of a server: name, hostname, description, addresses."""
    write(tx, get(tx, uuid), values, now)


def write(tx: Tx, server: Server, values: Mapping[str, Any], now: datetime) -> None:
    """Write columns of a server as it was read; :class:`ConcurrentUpdate` if it moved on."""
    if not BUSYNESS.isdisjoint(values):
        homes_then = {server.provider_id, values.get("provider_id")}
        changes.add_servers_only(tx, sorted(each for each in homes_then if each), now)
    if not server_rows.change(tx, server.uuid, server.updated_at, {**values, "updated_at": now}):
        raise ConcurrentUpdate(f"Server {server.uuid} was changed at the same time.")


def lock(tx: Tx, uuid: str, locked_by: str, reason: str | None, now: datetime) -> None:
    """Refuse changes of a server from now on, except an administrator's.

    Locking again gives a new reason. An administrator's lock does not become its owner's.
    """
    server = get(tx, uuid)
    if server.locked_by == Locker.ADMIN:
        locked_by = Locker.ADMIN
    values = {"is_locked": True, "locked_by": locked_by, "locked_reason": reason}
    write(tx, server, values, now)


def unlock(tx: Tx, uuid: str, now: datetime, *, may_override: bool) -> None:
    """Allow changes again. An administrator's lock goes only with ``may_override``."""
    server = get(tx, uuid)
    if server.locked_by == Locker.ADMIN and not may_override:
        raise Forbidden("An administrator locked the server, and it is not yours to unlock.")
    values = {"is_locked": False, "locked_by": None, "locked_reason": None}
    write(tx, server, values, now)


def demand_unlocked(server: Server, *, may_override: bool) -> None:
    """Raise :class:`Locked` for a locked server, unless the caller stands above locks."""
    if server.is_locked and not may_override:
        raise Locked(f"Server {server.uuid} is locked.")


def demand_host(server: Server) -> str:
    """The name of a server's host; :class:`WrongState` for one that is on none."""
    if server.host is None:
        raise WrongState(server.uuid, "host", None)
    return server.host


def finish_deletes(tx: Tx, uuids: Iterable[ServerId], now: datetime) -> set[ServerId]:
    """Mark servers deleted and free what they hold; gives those that were not yet."""
    ending = server_rows.alive(tx, uuids)
    if not ending:
        return set()
    server_rows.mark_deleted(tx, [each.uuid for each in ending], now)
    claims.release(tx, [ConsumerUuid(each.uuid) for each in ending], now)
    by_project: dict[str, list[Alive]] = {}
    for each in ending:
        by_project.setdefault(each.project_id, []).append(each)
    for project_id, gone in sorted(by_project.items()):
        vcpus, memory_mb = sum(e.vcpus for e in gone), sum(e.memory_mb for e in gone)
        quota_usages.add_usage(tx, project_id, -len(gone), -vcpus, -memory_mb)
    return {each.uuid for each in ending}


def fail_deletes(tx: Tx, failed: Iterable[Failed], now: datetime) -> None:
    """To ERROR with a fault, for servers that are still there and still hold what they held.

    Deleting such a server again tries again. Nothing changes for one that is not on the host,
    or not to go any more.
    """
    told = {each.uuid: each for each in failed}
    faults = {
        each.uuid: fault(told[each.uuid].message, now, told[each.uuid].details)
        for each in server_rows.alive(tx, told)
        if each.host == told[each.uuid].host and each.task_state == Task.DELETING
    }
    if faults:
        server_rows.mark_kept(tx, faults, now)


def finish_builds(tx: Tx, built: Mapping[ServerId, str], now: datetime) -> set[ServerId]:
    """From BUILD to ACTIVE, as the agents of the hosts report; gives those that went.

    Nothing changes for a server that is not being built on its host: the report is late, or
    was given before.
    """
    ready = [each for each in _in_build(tx, built) if each.host == built[each.uuid]]
    if ready:
        server_rows.mark_built(tx, [each.uuid for each in ready], now)
        changes.add_servers_only(tx, sorted({e.provider_id for e in ready if e.provider_id}), now)
    return {each.uuid for each in ready}


def fail_builds(tx: Tx, failed: Iterable[Failed], now: datetime) -> set[ServerId]:
    """From BUILD to ERROR with a fault; what the servers held is free again.

    They count against their projects' quotas until somebody deletes them. Gives those that
    went; nothing changes for a server that is not being built on its host.
    """
    told = {each.uuid: each for each in failed}
    faults = {
        each.uuid: fault(told[each.uuid].message, now, told[each.uuid].details)
        for each in _in_build(tx, told)
        if each.host == told[each.uuid].host
    }
    if faults:
        server_rows.mark_failed(tx, faults, now)
        claims.release(tx, [ConsumerUuid(uuid) for uuid in faults], now)
    return set(faults)


def _in_build(tx: Tx, uuids: Iterable[ServerId]) -> list[Alive]:
    return [each for each in server_rows.alive(tx, uuids) if each.status == Status.BUILD]


def fault(
    message: str, now: datetime, details: str = "", counted: str | None = None
) -> dict[str, Any]:
    """A server's fault, as its row keeps it.

    ``counted`` is what administrators read in place of the message: it may tell how many
    hosts are dedicated. It is kept where it says something else.
    """
    kept = {
        "code": 500,
        "created": now.replace(microsecond=0).isoformat() + "Z",
        "message": message[:FAULT_CHARS_MAX],
        "details": details,
    }
    if counted is not None and counted != message:
        kept[COUNTED] = counted[:FAULT_CHARS_MAX]
    return kept


def fault_message(fault: Mapping[str, Any], *, is_counted: bool) -> str:
    """What a kept fault says: in numbers of hosts, if they are known and may be told."""
    message: str = fault["message"]
    return str(fault.get(COUNTED, message)) if is_counted else message


def check_marker(found: Server | None, uuid: str) -> Server:
    """Raise :class:`Invalid` for a page that would begin behind no server."""
    if found is None:
        raise Invalid(f"marker [{uuid}] not found")
    return found
