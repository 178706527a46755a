"""Find, list, change and lock servers, and complete their builds and deletions.

Always true: the step that marks a server as deleted, or its build as failed, releases its
allocations. This step happens only once, because the row is changed by compare-and-update. A
server's row, allocations, volumes and quota usage change in one transaction.

If a server is deleted while its host is down, the server may still be on the host. The destroy
order then waits for the agent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
from innkeeper.domain.ids import ConsumerUuid, ProviderId, ServerId
from innkeeper.domain.listing import ServerSelection
from innkeeper.store import changes
from innkeeper.store.queries.compute import hosts, quota_usages, tree_pages
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.servers import Alive
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers import volume_orders
from innkeeper.systems.placement import claims

BUSYNESS = frozenset({"status", "task_state", "provider_id"})
"""The columns that determine how many servers and busy servers a host has."""
FAULT_CHARS_MAX = 4000
"""The maximum length of a fault's message, in characters. The agent's log has the full message."""
COUNTED = "counted"
"""The key of the message for administrators in a fault."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A failure of a server on a host. Only administrators see ``details``."""

    uuid: ServerId
    host: str
    message: str
    details: str = ""


def get(tx: Tx, uuid: str) -> Server:
    """Return a server. Raises :class:`NotFound` for an unknown or deleted server."""
    server = server_rows.by_uuid(tx, uuid)
    if server is None:
        raise NotFound(f"Server {uuid} could not be found.")
    return server


def marker(tx: Tx, uuid: str) -> Server | None:
    """Return the last server of the previous page, even if this server has been deleted since."""
    return server_rows.by_uuid(tx, uuid, is_deleted_wanted=True)


def page(tx: Tx, selection: ServerSelection, behind: Server | None = None) -> list[Server]:
    """Return a page of servers. ``behind`` is the last server of the previous page."""
    return server_rows.page(tx, selection, behind)


page_in_tree = tree_pages.page_in_tree
tree_key_of = tree_pages.tree_key_of


def homes(tx: Tx, servers: Iterable[Server]) -> dict[str, Host]:
    """Return the hosts of these servers, by the host's name."""
    return hosts.by_names(tx, sorted({each.host for each in servers if each.host is not None}))


def change(tx: Tx, uuid: str, values: Mapping[str, Any], now: datetime) -> None:
    """Change a server's name, its addresses, or other columns that no action writes."""
    write(tx, get(tx, uuid), values, now)


def write(tx: Tx, server: Server, values: Mapping[str, Any], now: datetime) -> None:
    """Write columns of a server. Raises :class:`ConcurrentUpdate` if the row has changed."""
    if not BUSYNESS.isdisjoint(values):
        homes_then = {server.provider_id, values.get("provider_id")}
        _count_again(tx, {each for each in homes_then if each is not None}, now)
    if not server_rows.change(tx, server.uuid, server.updated_at, {**values, "updated_at": now}):
        raise ConcurrentUpdate(f"Server {server.uuid} was changed at the same time.")


def lock(tx: Tx, uuid: str, locked_by: str, reason: str | None, now: datetime) -> None:
    """Lock a server, or replace the reason of its lock.

    If another user replaces the reason of an administrator's lock, the lock stays an
    administrator's lock.
    """
    server = get(tx, uuid)
    if server.locked_by == Locker.ADMIN:
        locked_by = Locker.ADMIN
    values = {"is_locked": True, "locked_by": locked_by, "locked_reason": reason}
    write(tx, server, values, now)


def unlock(tx: Tx, uuid: str, now: datetime, *, may_override: bool) -> None:
    """Unlock a server. An administrator's lock can be removed only with ``may_override``."""
    server = get(tx, uuid)
    if server.locked_by == Locker.ADMIN and not may_override:
        raise Forbidden(
            "The server was locked by an administrator; only an administrator can unlock it."
        )
    values = {"is_locked": False, "locked_by": None, "locked_reason": None}
    write(tx, server, values, now)


def demand_unlocked(server: Server, *, may_override: bool) -> None:
    """Raise :class:`Locked` for a locked server, unless the caller may override locks."""
    if server.is_locked and not may_override:
        raise Locked(f"Server {server.uuid} is locked.")


def demand_host(server: Server) -> str:
    """Return the name of a server's host.

    Raises :class:`WrongState` for a server without a host.
    """
    if server.host is None:
        raise WrongState(server.uuid, "host", None)
    return server.host


alive = server_rows.alive


def finish_deletes(tx: Tx, uuids: Iterable[ServerId], now: datetime) -> set[ServerId]:
    """Mark servers as deleted, and release their allocations. Return the newly marked servers."""
    ending = server_rows.alive(tx, uuids)
    if not ending:
        return set()
    server_rows.mark_deleted(tx, [each.uuid for each in ending], now)
    _release(tx, ending, now)
    volume_orders.servers_gone(tx, [each.uuid for each in ending], now)
    by_project: dict[str, list[Alive]] = {}
    for each in ending:
        by_project.setdefault(each.project_id, []).append(each)
    for project_id, gone in sorted(by_project.items()):
        vcpus, memory_mb = sum(e.vcpus for e in gone), sum(e.memory_mb for e in gone)
        quota_usages.add_usage(tx, project_id, -len(gone), -vcpus, -memory_mb)
    return {each.uuid for each in ending}


def fail_deletes(tx: Tx, failed: Iterable[Failed], now: datetime) -> None:
    """Set servers that could not be destroyed to ERROR. These servers keep their allocations.

    The owner can delete such a server again. A server that is no longer on the host, or is not
    being deleted, is unchanged.
    """
    by_uuid = {each.uuid: each for each in failed}
    deleting = (e for e in server_rows.alive(tx, by_uuid) if e.task_state == Task.DELETING)
    kept = [each for each in deleting if each.host == by_uuid[each.uuid].host]
    if kept:
        server_rows.mark_kept(tx, _faults(by_uuid, kept, now), now)
        _count_again(tx, _providers(kept), now)


def _faults(
    failed: Mapping[ServerId, Failed], servers: Iterable[Alive], now: datetime
) -> dict[ServerId, dict[str, Any]]:
    return {
        each.uuid: fault(failed[each.uuid].message, now, failed[each.uuid].details)
        for each in servers
    }


def finish_builds(tx: Tx, built: Mapping[ServerId, str], now: datetime) -> set[ServerId]:
    """Set servers that were built on these hosts from BUILD to ACTIVE. Return these servers.

    A server that is not in BUILD on the host is unchanged, because the report about this server is
    late or repeated.
    """
    ready = [each for each in _in_build(tx, built) if each.host == built[each.uuid]]
    if ready:
        server_rows.mark_built(tx, [each.uuid for each in ready], now)
        volume_orders.servers_built(tx, [each.uuid for each in ready], now)
        _count_again(tx, _providers(ready), now)
    return {each.uuid for each in ready}


def fail_builds(tx: Tx, failed: Iterable[Failed], now: datetime) -> set[ServerId]:
    """Set servers from BUILD to ERROR, release their allocations, and return the servers.

    The servers count against the quota until they are deleted. Each failure names a server and a
    host. If the server is not in BUILD, or is on another host, the server is unchanged.
    """
    by_uuid = {each.uuid: each for each in failed}
    ending = [each for each in _in_build(tx, by_uuid) if each.host == by_uuid[each.uuid].host]
    if ending:
        server_rows.mark_failed(tx, _faults(by_uuid, ending, now), now)
        _release(tx, ending, now)
    return {each.uuid for each in ending}


def _release(tx: Tx, ending: Sequence[Alive], now: datetime) -> None:
    """Release the allocations of servers that leave their hosts."""
    freed = claims.release(tx, [ConsumerUuid(each.uuid) for each in ending], now)
    # An administrator may have deleted the allocations of some servers before.
    _count_again(tx, _providers(ending) - {each.provider_id for each in freed}, now)


def _count_again(tx: Tx, providers: Collection[ProviderId], now: datetime) -> None:
    """Add change rows for hosts whose number of servers or busy servers has changed."""
    changes.add_servers_only(tx, sorted(providers), now)


def _providers(servers: Iterable[Alive]) -> set[ProviderId]:
    return {each.provider_id for each in servers if each.provider_id is not None}


def _in_build(tx: Tx, uuids: Iterable[ServerId]) -> list[Alive]:
    return [each for each in server_rows.alive(tx, uuids) if each.status == Status.BUILD]


def fault(
    message: str, now: datetime, details: str = "", counted: str | None = None
) -> dict[str, Any]:
    """Return a server's fault as stored in its row.

    ``counted`` is the message for administrators, which may contain numbers of dedicated hosts.
    ``counted`` is stored only if it differs from ``message``.
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
    """Return a fault's message.

    With ``is_counted``, return the message for administrators if the fault has one.
    """
    message: str = fault["message"]
    return str(fault.get(COUNTED, message)) if is_counted else message


def check_marker(found: Server | None, uuid: str) -> Server:
    """Return the server found for a marker. Raises :class:`Invalid` for an unknown marker."""
    if found is None:
        raise Invalid(f"marker [{uuid}] not found")
    return found
