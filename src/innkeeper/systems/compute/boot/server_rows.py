"""Write the rows of booted servers, their quota usage, group memberships and build orders.

Always true: the rows of servers are written in the transaction that claims their hosts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from innkeeper.domain.compute import Booted, BootRequest, Power, Status, Task
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.placing import Entry
from innkeeper.scheduling import reasons
from innkeeper.store.queries.compute import orders, quota_usages
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.decisions import DecisionRecord
from innkeeper.systems.compute.boot.resolved_requests import ResolvedRequest
from innkeeper.systems.compute.grouping import dedications, groups
from innkeeper.systems.compute.servers import servers, volume_orders
from innkeeper.systems.volumes import attachments
from innkeeper.systems.zones import used_entries
from innkeeper.systems.zones.used_entries import UsedEntry

HOSTNAME_MAX = 63
"""The maximum length of a host name, in octets. A label in a domain name has the same limit (RFC
1035)."""
_NOT_IN_LABEL = re.compile(r"[^a-z0-9-]+")


class NewServers(msgspec.Struct, frozen=True):
    """The servers of one request. ``entries`` is empty if the servers are in ERROR.

    ``agents`` and ``automatic_pclouds`` have one item per entry. ``automatic_pclouds`` is empty
    if the request names dedicated hosts, or if no automatic pcloud takes the project's servers.
    """

    resolved: ResolvedRequest
    booted: Booted
    record: DecisionRecord
    entries: Sequence[Entry] = ()
    agents: Sequence[AgentId] = ()
    automatic_pclouds: Sequence[str | None] = ()


def write(tx: Tx, batch: Sequence[NewServers]) -> None:
    """Write all rows of the servers of several requests."""
    if not batch:
        return
    new_orders: list[NewOrder] = []
    members: dict[int, list[ServerId]] = {}
    usages: dict[str, list[int]] = {}
    for each in batch:
        request, flavor = each.resolved.request, each.resolved.flavor
        new_orders += _orders(tx, each)
        if each.resolved.group_id is not None:
            members.setdefault(each.resolved.group_id, []).extend(each.booted.server_ids)
        usage = usages.setdefault(request.project_id, [0, 0, 0])
        for column, amount in enumerate((1, flavor.vcpus, flavor.memory_mb)):
            usage[column] += amount * len(each.booted.server_ids)
    used_entries.use_many(tx, [row for each in batch for row in _used(each.resolved.request)])
    server_rows.insert_many(tx, [row for each in batch for row in _rows(each)])
    orders.add(tx, new_orders, batch[0].resolved.request.now)
    for group_id, server_ids in members.items():
        groups.add_members(tx, group_id, server_ids)
    for project_id, (count, vcpus, memory_mb) in usages.items():
        quota_usages.add_usage(tx, project_id, count, vcpus, memory_mb)


def _used(request: BootRequest) -> list[UsedEntry]:
    if request.entries:
        return [UsedEntry(e.entry_id, e.server_id, e.expires_at) for e in request.entries]
    if request.entry_id is None or request.expires_at is None:
        return []
    return [UsedEntry(request.entry_id, request.server_ids[0], request.expires_at)]


def _rows(new: NewServers) -> list[dict[str, Any]]:
    request, shared = new.resolved.request, _shared_columns(new.resolved)
    shared["fault"] = _fault(new.booted, request.now)
    rows = []
    for index, server_id in enumerate(new.booted.server_ids):
        entry = new.entries[index] if new.entries else None
        row = {
            **shared,
            "uuid": server_id,
            "name": _name(request, index),
            "hostname": _hostname(request, index, server_id),
            "launch_index": request.launch_index(index),
            "status": Status.ERROR if entry is None else Status.BUILD,
            "task_state": None if entry is None else Task.SPAWNING,
            "host": None if entry is None else entry.host,
            "provider_id": None if entry is None else entry.provider_id,
            "decision": new.record.of_server(index),
        }
        pcloud = new.automatic_pclouds[index] if new.automatic_pclouds else None
        if pcloud is not None:
            # The request did not name the pcloud. A hint is added, so that later moves keep the
            # server in this pcloud.
            row["hints"] = dedications.taken_in(request.hints, pcloud)
        rows.append(row)
    return rows


def _orders(tx: Tx, new: NewServers) -> list[NewOrder]:
    made = [
        NewOrder(
            agent_id=new.agents[index],
            host=entry.host,
            server_uuid=new.booted.server_ids[index],
            kind=OrderKind.BUILD,
            body=_order_body(new.resolved, _name(new.resolved.request, index)),
            alternates=entry.alternates,
            request_id=new.resolved.request.request_id,
        )
        for index, entry in enumerate(new.entries)
    ]
    if not new.resolved.request.has_volumes:
        return made
    return [_with_volumes(tx, each) for each in made]


def _with_volumes(tx: Tx, order: NewOrder) -> NewOrder:
    """Return a build order that lists the server's volumes.

    The order is not delivered to the agent until all volumes are made.
    """
    mine = attachments.of_servers(tx, [order.server_uuid])
    body = {**order.body, "volumes": attachments.orders_body(tx, order.server_uuid)}
    return replace(order, body=body, is_held=not volume_orders.are_made(tx, mine))


def _fault(booted: Booted, now: datetime) -> dict[str, Any] | None:
    if booted.fault is None:
        return None
    details = booted.details if booted.refused is None else reasons.details(booted.refused)
    return servers.fault(booted.fault, now, details, booted.counted_fault)


def _name(request: BootRequest, index: int) -> str:
    """Return a server's name. Several servers of one request are numbered, as in Nova.

    A zone parent names each of its servers.
    """
    if request.entries:
        return request.entries[index].name
    if not request.numbers_names:
        return request.name
    return f"{request.name}-{request.launch_index(index) + 1}"


def _hostname(request: BootRequest, index: int, server_id: str) -> str:
    """Return a server's host name.

    If no host name was requested, it is made from the server's name.
    """
    if request.entries:
        told = request.entries[index].hostname
        return told if told is not None else _label(request.entries[index].name, server_id)
    if request.hostname is not None:
        number = request.launch_index(index) + 1
        return f"{request.hostname}-{number}" if request.numbers_names else request.hostname
    return _label(_name(request, index), server_id)


def _label(name: str, server_id: str) -> str:
    label = _NOT_IN_LABEL.sub("-", name.lower()).strip("-")[:HOSTNAME_MAX].strip("-")
    return label or f"server-{server_id}"


def _shared_columns(resolved: ResolvedRequest) -> dict[str, Any]:
    request, flavor, image = resolved.request, resolved.flavor, resolved.image
    return {
        "description": request.description,
        "project_id": request.project_id,
        "user_id": request.user_id,
        "batch_id": request.batch_id,
        "flavor": resolved.facts,
        "flavor_id": flavor.flavor_id,
        "vcpus": flavor.vcpus,
        "memory_mb": flavor.memory_mb,
        "disk_gb": flavor.all_disk_gb,
        "image_id": request.image_id,
        "image_properties": dict(image.properties) if image is not None else {},
        "asked_az": request.availability_zone,
        "key_name": request.key_name,
        "has_config_drive": request.has_config_drive,
        "user_data": request.user_data,
        "metadata": dict(request.metadata),
        "tags": list(request.tags),
        "hints": dict(request.hints),
        "request_id": request.request_id,
        "access_ip_v4": request.access_ip_v4,
        "access_ip_v6": request.access_ip_v6,
        "power_state": Power.NO_STATE,
        "is_locked": False,
        "locked_reason": None,
        "created_at": request.now,
        "updated_at": request.now,
        "launched_at": None,
        "deleted_at": None,
    }


def _order_body(resolved: ResolvedRequest, name: str) -> Mapping[str, Any]:
    request = resolved.request
    return {
        "name": name,
        "project_id": request.project_id,
        "flavor": resolved.facts,
        "image_id": request.image_id,
        "key_name": request.key_name,
        "has_config_drive": request.has_config_drive,
        "user_data": request.user_data,
        "metadata": dict(request.metadata),
    }
