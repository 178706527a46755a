"""Shelve servers: a server is shut down and kept as an image, and later offloaded from its host.

Always true: a shelved server keeps its allocations until the host's agent has confirmed that
nothing of the server is left on the host. An offloaded server that may have been started on a host
also keeps its allocations. An offloaded server without a host has no allocations, but counts as
quota usage.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Power, Server, Status, Task
from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.ids import ConsumerUuid
from innkeeper.domain.moves import ActionName, Initiator, Moved
from innkeeper.domain.orders import OrderKind
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
from innkeeper.systems.compute.servers.results import Result
from innkeeper.systems.placement import claims, transfers

UNCHANGED = "as asked"
"""The value of ``availability_zone`` that leaves the server's requested zone unchanged."""
AT_ONCE = 0


class NotOffloaded(Conflict):
    """The request names an availability zone or a host for a server that still has a host."""


class HostNotInZone(Conflict):
    """The request names a host and an availability zone, but the host is not in that zone."""


def shelve(tx: Tx, uuid: str, initiator: Initiator, *, offload_time_s: int, now: datetime) -> None:
    """Begin to shelve a server. If ``offload_time_s`` is 0, the server is offloaded right after."""
    server = actions.admit(tx, uuid, initiator, moving.SHELVABLE)
    moving.demand_settled(tx, server)
    values = {"task_state": Task.SHELVING}
    actions.begin(tx, server, ActionName.SHELVE, initiator, values, now)
    body = {**actions.order_body(server), "offload": offload_time_s == AT_ONCE}
    actions.order_home(tx, server, OrderKind.SHELVE, body, initiator.request_id, now)


def apply_shelve(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of a shelve order."""
    server = server_rows.by_uuid(tx, order.server_uuid)
    if server is None or server.task_state != Task.SHELVING:
        return
    actions.end_by(tx, order, result, now)
    if not result.is_ok:
        _stay(tx, server, order, result, now)
        return
    is_leaving = bool(orders.bodies(tx, [order.id])[order.id].get("offload"))
    values = {
        "status": Status.SHELVED,
        "power_state": Power.SHUTDOWN,
        "task_state": Task.SHELVING_OFFLOADING if is_leaving else None,
    }
    servers.write(tx, server, values, now)
    if is_leaving:
        actions.order_home(tx, server, OrderKind.OFFLOAD, {}, order.request_id, now)


def offload(tx: Tx, uuid: str, initiator: Initiator, *, now: datetime) -> None:
    """Begin to offload a shelved server from its host."""
    server = actions.admit(tx, uuid, initiator, (Status.SHELVED,))
    values = {"task_state": Task.SHELVING_OFFLOADING}
    actions.begin(tx, server, ActionName.SHELVE_OFFLOAD, initiator, values, now)
    actions.order_home(tx, server, OrderKind.OFFLOAD, {}, initiator.request_id, now)


def offload_due(tx: Tx, before: datetime, limit: int, now: datetime) -> int:
    """Begin to offload servers that were shelved before a given time. Return their number."""
    return _offload_idle(tx, Status.SHELVED, before, limit, now)


def retry_offloads(tx: Tx, before: datetime, limit: int, now: datetime) -> int:
    """Order the offload again for servers whose host has not confirmed it.

    Return the number of servers.
    """
    return _offload_idle(tx, Status.SHELVED_OFFLOADED, before, limit, now)


def _offload_idle(tx: Tx, status: str, before: datetime, limit: int, now: datetime) -> int:
    due = server_rows.idle_since(tx, status, before, limit)
    for server in due:
        servers.write(tx, server, {"task_state": Task.SHELVING_OFFLOADING}, now)
        actions.order_home(tx, server, OrderKind.OFFLOAD, {}, None, now)
    return len(due)


def apply_offload(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of an offload order."""
    server = server_rows.by_uuid(tx, order.server_uuid)
    if server is None:
        return
    if result.is_ok and server.task_state is None and server.host == order.host:
        # The server's state was reset after the order, but the server is no longer on this host.
        _leave(tx, server, now)
        return
    if server.task_state != Task.SHELVING_OFFLOADING:
        return
    actions.end_by(tx, order, result, now)
    if not result.is_ok:
        _stay(tx, server, order, result, now)
        return
    _leave(tx, server, now)


def _stay(tx: Tx, server: Server, order: OpenOrder, result: Result, now: datetime) -> None:
    fault = actions.fault_of(order, result, now)
    servers.write(tx, server, {"task_state": None, "fault": fault}, now)


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
    initiator: Initiator,
    *,
    availability_zone: str | None = UNCHANGED,
    host: str | None = None,
    seed: int,
    now: datetime,
) -> Moved:
    """Begin to unshelve a server on its present host, or on the best host if it has none.

    The availability zone is also stored as the server's requested zone. ``None`` means any
    availability zone. Raises :class:`NotOffloaded`, :class:`HostNotInZone` and
    :class:`destinations.UnknownHost`. Raises :class:`Conflict` if the server can no longer use its
    pcloud or reservation.
    """
    server = actions.admit(tx, uuid, initiator, (Status.SHELVED, Status.SHELVED_OFFLOADED))
    values: dict[str, Any] = {"task_state": Task.UNSHELVING}
    # An offloaded server has a host if an unshelve failed and the new offload is not confirmed.
    if server.host is not None:
        if host is not None or availability_zone != UNCHANGED:
            raise NotOffloaded(
                "Specifying an availability zone or a host when unshelving server "
                f'"{server.uuid}" with status "shelved" is not supported. The server status '
                "must be SHELVED_OFFLOADED."
            )
        actions.begin(tx, server, ActionName.UNSHELVE, initiator, values, now)
        actions.order_home(
            tx, server, OrderKind.UNSHELVE, actions.order_body(server), initiator.request_id, now
        )
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
        return moving.no_valid_host(tx, server, ActionName.UNSHELVE, initiator, place, now)
    transfers.claim_beside(tx, moving.side(server), place.amounts, now)
    values |= {"host": place.host, "provider_id": place.provider_id}
    values |= {"asked_az": zone, "hints": server.hints}
    actions.begin(tx, server, ActionName.UNSHELVE, initiator, values, now)
    actions.order_home(
        tx,
        replace(server, host=place.host),
        OrderKind.UNSHELVE,
        actions.order_body(server),
        initiator.request_id,
        now,
    )
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


def apply_unshelve(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of an unshelve order."""
    server = server_rows.by_uuid(tx, order.server_uuid)
    if server is None or server.task_state != Task.UNSHELVING:
        return
    actions.end_by(tx, order, result, now)
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
    fault = actions.fault_of(order, result, now)
    if server.status != Status.SHELVED_OFFLOADED:
        servers.write(tx, server, {"task_state": None, "fault": fault}, now)
    elif result.is_late:
        # The host may have started the server despite the timeout, so the server keeps its
        # allocations until the offload is confirmed.
        task = {"task_state": Task.SHELVING_OFFLOADING, "fault": fault}
        servers.write(tx, server, task, now)
        actions.order_home(tx, server, OrderKind.OFFLOAD, {}, None, now)
    else:
        _leave(tx, server, now, fault=fault)
