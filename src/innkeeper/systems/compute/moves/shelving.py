"""Shelving: a server is shut down and kept as an image, and its host is free sooner or later.

Always true: a shelved server holds its host until the host's agent has confirmed that nothing
of it is left there, as does an offloaded one that may have been started on a host. Offloaded
and on no host, it holds nothing but its share of the quota.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import OrderKind, Power, Server, Status, Task
from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.ids import ConsumerUuid
from innkeeper.domain.moves import ActionName, Asker, Moved
from innkeeper.store.queries.compute import hosts, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import request_resolver
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.compute.moves import dedicated_hosts, destinations, moving
from innkeeper.systems.compute.moves.destinations import NoValidHost
from innkeeper.systems.compute.servers import actions, servers
from innkeeper.systems.compute.servers.results import Result, told
from innkeeper.systems.placement import claims, transfers

UNCHANGED = "as asked"
"""Stands for the availability zone that the server asked for already."""
AT_ONCE = 0


class NotOffloaded(Conflict):
    """Somebody named a zone or a host for a server that has still one of its own."""


class HostNotInZone(Conflict):
    """Somebody named a host, and a zone that it is not in."""


def shelve(tx: Tx, uuid: str, asker: Asker, *, offload_time_s: int, now: datetime) -> None:
    """Begin to shelve a server; its host is freed at once if ``offload_time_s`` is 0."""
    server = actions.admit(tx, uuid, asker, moving.SHELVABLE)
    moving.demand_settled(tx, server)
    values = {"task_state": Task.SHELVING}
    actions.begin(tx, server, ActionName.SHELVE, asker, values, now)
    body = {**actions.order_body(server), "offload": offload_time_s == AT_ONCE}
    _tell(tx, server, OrderKind.SHELVE, body, asker.request_id, now)


def follow_shelve(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """The host has shelved the server, or it has not."""
    server = server_rows.by_uuid(tx, order.server_uuid)
    if server is None or server.task_state != Task.SHELVING:
        return
    message = None if result.is_ok else told(order, result)
    actions.end(tx, server.uuid, order.request_id, message, now)
    if not result.is_ok:
        servers.write(tx, server, _as_before(order, result, now), now)
        return
    is_leaving = bool(orders.bodies(tx, [order.id])[order.id].get("offload"))
    values = {
        "status": Status.SHELVED,
        "power_state": Power.SHUTDOWN,
        "task_state": Task.SHELVING_OFFLOADING if is_leaving else None,
    }
    servers.write(tx, server, values, now)
    if is_leaving:
        _tell(tx, server, OrderKind.OFFLOAD, {}, order.request_id, now)


def offload(tx: Tx, uuid: str, asker: Asker, *, now: datetime) -> None:
    """Begin to free the host of a shelved server."""
    server = actions.admit(tx, uuid, asker, (Status.SHELVED,))
    values = {"task_state": Task.SHELVING_OFFLOADING}
    actions.begin(tx, server, ActionName.SHELVE_OFFLOAD, asker, values, now)
    _tell(tx, server, OrderKind.OFFLOAD, {}, asker.request_id, now)


def offload_due(tx: Tx, before: datetime, limit: int, now: datetime) -> int:
    """Begin to free the hosts of servers that were shelved before a moment."""
    return _offload_idle(tx, Status.SHELVED, before, limit, now)


def remind(tx: Tx, before: datetime, limit: int, now: datetime) -> int:
    """Ask again for what hosts should have let go by a moment; gives of how many servers."""
    return _offload_idle(tx, Status.SHELVED_OFFLOADED, before, limit, now)


def _offload_idle(tx: Tx, status: str, before: datetime, limit: int, now: datetime) -> int:
    due = server_rows.idle_since(tx, status, before, limit)
    for server in due:
        servers.write(tx, server, {"task_state": Task.SHELVING_OFFLOADING}, now)
        _tell(tx, server, OrderKind.OFFLOAD, {}, None, now)
    return len(due)


def follow_offload(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """The host has let the server go, or it has not."""
    server = server_rows.by_uuid(tx, order.server_uuid)
    if server is None:
        return
    if result.is_ok and server.task_state is None and server.host == order.host:
        # Somebody has said that it is something else; but this is where it is no more.
        _leave(tx, server, now)
        return
    if server.task_state != Task.SHELVING_OFFLOADING:
        return
    message = None if result.is_ok else told(order, result)
    actions.end(tx, server.uuid, order.request_id, message, now)
    if not result.is_ok:
        servers.write(tx, server, _as_before(order, result, now), now)
        return
    _leave(tx, server, now)


def _as_before(order: OpenOrder, result: Result, now: datetime) -> dict[str, Any]:
    return {"task_state": None, "fault": servers.fault(told(order, result), now, result.message)}


def _leave(tx: Tx, server: Server, now: datetime, **more: Any) -> None:
    claims.release(tx, [ConsumerUuid(server.uuid)], now)
    values: dict[str, Any] = {
        "status": Status.SHELVED_OFFLOADED,
        "task_state": None,
        "power_state": Power.NO_STATE,
        "host": None,
        "provider_id": None,
        **more,
    }
    servers.write(tx, server, values, now)


def unshelve(
    tx: Tx,
    context: DecisionContext,
    uuid: str,
    asker: Asker,
    *,
    availability_zone: str | None = UNCHANGED,
    host: str | None = None,
    seed: int,
    now: datetime,
) -> Moved:
    """Begin to start a shelved server: on its host, or where there is room if it has none.

    One that could not be offloaded again, after it was not started in time, has a host still.

    With a zone it asks for that from now on; ``None`` is any. Raises :class:`NotOffloaded`,
    :class:`HostNotInZone`, and :class:`destinations.UnknownHost`; and :class:`Conflict` where
    its pcloud or reservation is gone, see :func:`dedicated_hosts.demand_there`.
    """
    statuses = (Status.SHELVED, Status.SHELVED_OFFLOADED)
    server = actions.admit(tx, uuid, asker, statuses)
    values: dict[str, Any] = {"task_state": Task.UNSHELVING}
    if server.host is not None:
        if host is not None or availability_zone != UNCHANGED:
            raise NotOffloaded(
                "Specifying an availability zone or a host when unshelving server "
                f'"{server.uuid}" with status "shelved" is not supported. The server status '
                "must be SHELVED_OFFLOADED."
            )
        actions.begin(tx, server, ActionName.UNSHELVE, asker, values, now)
        body = actions.order_body(server)
        _tell(tx, server, OrderKind.UNSHELVE, body, asker.request_id, now)
        return Moved(None)
    zone = server.asked_az if availability_zone == UNCHANGED else availability_zone
    _demand_place(tx, context, server, zone, host)
    server = replace(server, hints=dedications.still_bound(tx, server.hints, server.project_id))
    dedicated_hosts.demand_there(tx, server, now)
    spec = request_resolver.spec_of_server(
        tx, context, server, now=now, seed=seed, forced_host=host, availability_zone=zone
    )
    place = destinations.find(context, spec)
    if isinstance(place, NoValidHost):
        return moving.nowhere(tx, server, ActionName.UNSHELVE, asker, place, now)
    transfers.claim_beside(tx, moving.side(server), place.amounts, now)
    values |= {"host": place.host, "provider_id": place.provider_id, "asked_az": zone}
    values["hints"] = server.hints
    actions.begin(tx, server, ActionName.UNSHELVE, asker, values, now)
    is_told = actions.tell(
        tx,
        place.host,
        server.uuid,
        OrderKind.UNSHELVE,
        actions.order_body(server),
        now,
        request_id=asker.request_id,
    )
    assert is_told, "the host was just chosen"
    return Moved(None)


def _demand_place(
    tx: Tx, context: DecisionContext, server: Server, zone: str | None, host: str | None
) -> None:
    if zone is not None and zone != server.asked_az and not context.follower.table.has_zone(zone):
        raise Invalid("The requested availability zone is not available")
    if host is None:
        return
    found = hosts.by_names(tx, [host]).get(host)
    if found is None:
        raise destinations.UnknownHost(f"Compute host {host} could not be found.")
    if zone is not None and found.availability_zone != zone:
        raise HostNotInZone(f'Host "{host}" is not in the availability zone "{zone}".')


def follow_unshelve(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """The host has started the server, or it has not."""
    server = server_rows.by_uuid(tx, order.server_uuid)
    if server is None or server.task_state != Task.UNSHELVING:
        return
    message = None if result.is_ok else told(order, result)
    actions.end(tx, server.uuid, order.request_id, message, now)
    if result.is_ok:
        values = {
            "status": Status.ACTIVE,
            "task_state": None,
            "power_state": Power.RUNNING,
            "launched_at": now,
            "fault": None,
        }
        servers.write(tx, server, values, now)
        return
    fault = servers.fault(told(order, result), now, result.message)
    if server.status != Status.SHELVED_OFFLOADED:
        servers.write(tx, server, {"task_state": None, "fault": fault}, now)
    elif result.is_late:
        # It may have been started all the same, and holds its host until it is surely gone.
        task = {"task_state": Task.SHELVING_OFFLOADING, "fault": fault}
        servers.write(tx, server, task, now)
        _tell(tx, server, OrderKind.OFFLOAD, {}, None, now)
    else:
        _leave(tx, server, now, fault=fault)


def _tell(
    tx: Tx, server: Server, kind: str, body: dict[str, Any], request_id: str | None, now: datetime
) -> None:
    host = servers.demand_host(server)
    is_told = actions.tell(tx, host, server.uuid, kind, body, now, request_id=request_id)
    assert is_told, "a host with a server on it is not forgotten"
