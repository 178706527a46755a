"""Orders to agents about volumes, and the end of attachments of deleted servers.

Always true: an order about a volume is written in the transaction that gives the volume the status
to which the order belongs. The subject of these orders is the volume. The orders about one subject
are carried out one after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Conflict, NotFound
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.domain.moves import MigrationStatus
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.volumes import Attachment, AttachStatus, Volume, VolumeStatus
from innkeeper.store.queries.compute import hosts, migrations, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import pools
from innkeeper.systems.volumes import attachments, volumes

SILENT_S = 300.0
"""The number of seconds after which a host counts as silent. Another host of the shared pool then
gets the orders."""
HOSTS_TRIED = 20
NOT_EXTENDED = "The volume was not extended, because it was to be deleted."
GONE = "The server was deleted, or its new volumes could not be made."


def give(
    tx: Tx,
    volume: Volume,
    kind: str,
    now: datetime,
    *,
    request_id: str | None = None,
    is_held: bool = False,
) -> bool:
    """Queue an order about a volume. Return False if no host can carry out the order.

    With ``is_held``, agents do not get the order until :func:`unattached` delivers it.
    """
    home = _host_for(tx, volume, now)
    if home is None:
        return False
    names = volumes.pool_names(tx, [volume.provider_id] if volume.provider_id else [])
    pool = next(iter(names.values()), None)
    order = new(volume, kind, home.agent_id, home.name, pool, request_id)
    orders.add(tx, [replace(order, is_held=is_held)], now)
    return True


def new(
    volume: Volume,
    kind: str,
    agent_id: AgentId,
    host: str,
    pool: str | None,
    request_id: str | None,
) -> NewOrder:
    """Return an order about a volume, for an agent and one of the agent's hosts."""
    body = {
        "volume_id": volume.uuid,
        "name": volume.name,
        "project_id": volume.project_id,
        "size_gb": volume.held_gb,
        "pool": pool,
        "image_id": volume.image_id,
        "source_volume_id": volume.source_uuid,
        "metadata": dict(volume.metadata),
    }
    return NewOrder(agent_id, host, ServerId(volume.uuid), kind, body, request_id=request_id)


def _host_for(tx: Tx, volume: Volume, now: datetime) -> Host | None:
    """Return the host that carries out orders about a volume.

    This is the host that made the volume. If that host is silent or removed, and the pool is
    shared, the host of the pool with the latest heartbeat is returned instead.
    """
    if volume.host is None or volume.provider_id is None:
        return None
    home = hosts.by_names(tx, [volume.host]).get(volume.host)
    if home is not None:
        is_heard = now - home.last_seen_at <= timedelta(seconds=SILENT_S)
        if home.provider_id == volume.provider_id or is_heard:
            return home
    served = pools.hosts_served(tx, volume.provider_id, HOSTS_TRIED)
    found = hosts.by_providers(tx, served)
    return max(found, key=lambda each: each.last_seen_at, default=home)


def is_shared(tx: Tx, volume: Volume) -> bool:
    """Return True if a volume is in a shared pool, and False if it is on a host's own disks."""
    if volume.provider_id is None:
        return False
    return not hosts.by_providers(tx, [volume.provider_id])


def reaches(tx: Tx, volume: Volume, host: Host) -> bool:
    """Return True if a host can use a volume.

    A shared pool must serve the host. Every host can use a volume on another host's disks.
    """
    if volume.provider_id is None:
        return False
    if not is_shared(tx, volume):
        return True
    return pools.serves(tx, volume.provider_id, host.provider_id)


def begin_delete(tx: Tx, volume: Volume, now: datetime, *, request_id: str | None = None) -> None:
    """Order an agent to delete a volume.

    While servers are attached to the volume, the agent does not get the order yet. If no host can
    carry out the order, the volume is deleted at once.
    """
    if volumes.is_being_deleted(tx, volume):
        return
    # Other pending orders about the volume are no longer needed.
    orders.withdraw_all(tx, ServerId(volume.uuid), now)
    is_held = attachments.has_servers(tx, volume.uuid)
    kind = OrderKind.DROP_VOLUME
    if not give(tx, volume, kind, now, request_id=request_id, is_held=is_held):
        volumes.forget(tx, [volume.uuid], now)
        return
    volumes.write(tx, volume, {"status": VolumeStatus.DELETING, "prior_status": None}, now)


def unattached(tx: Tx, uuids: Iterable[str], now: datetime) -> None:
    """Deliver the waiting delete orders of volumes that no longer have an attached server.

    If an administrator has reset a volume's status meanwhile, the order ends and the volume is
    kept.
    """
    for order in orders.held(tx, [ServerId(uuid) for uuid in sorted(set(uuids))]):
        if order.kind != OrderKind.DROP_VOLUME or attachments.has_servers(tx, order.server_uuid):
            continue
        volume = volumes.by_uuids(tx, [order.server_uuid]).get(order.server_uuid)
        if volume is None:
            orders.drop_held(tx, order, now)
        elif volume.status == VolumeStatus.DELETING:
            orders.deliver_held(tx, order, orders.bodies(tx, [order.id])[order.id], now)
        else:
            orders.drop_held(tx, order, now)
            end_growth(tx, volume, now)


def end_growth(tx: Tx, volume: Volume, now: datetime) -> Volume:
    """End the extension of a volume that was to be deleted, but is kept.

    The deletion has withdrawn the order to extend the volume, so no result will end the extension.
    """
    volumes.end_extend(tx, volume, NOT_EXTENDED, volume.status, now)
    return volumes.get(tx, volume.uuid)


def servers_gone(tx: Tx, uuids: Collection[ServerId], now: datetime) -> None:
    """Free the volumes of deleted servers, and delete volumes that end with their server.

    If a server was deleted while it moved, a second host may have a copy. The server's volumes are
    then kept until this host has destroyed the copy, or has been silent for :data:`SILENT_S`. The
    caller must then call this function again for the server.
    """
    mine = attachments.of_servers(tx, uuids)
    if not mine:
        return
    orders.end_held(tx, uuids, GONE, now)
    left = left_somewhere(tx, {ServerId(each.server_uuid or "") for each in mine}, now)
    for each in mine:
        if each.server_uuid in left:
            # The change is also a note that this attachment was looked at.
            attachments.change(tx, each, {"status": AttachStatus.DETACHING}, now)
    mine = [each for each in mine if each.server_uuid not in left]
    attachments.remove(tx, mine, now)
    unattached(tx, [each.volume_uuid for each in mine], now)
    doomed = {each.volume_uuid for each in mine if each.deletes_volume}
    used = {each.volume_uuid for each in attachments.of_volumes(tx, doomed)}
    for uuid, volume in volumes.by_uuids(tx, doomed - used).items():
        assert uuid == volume.uuid
        begin_delete(tx, volume, now)


def left_somewhere(tx: Tx, uuids: Collection[ServerId], now: datetime) -> set[str]:
    """Return the servers that have left a copy on another host, where it must be cleaned up.

    Moves and late builds leave such copies. Hosts that are silent do not count. The last host of a
    deleted server does not count either, because this host has destroyed the server.
    """
    places = set()
    for move in migrations.open_ones(tx, uuids):
        if move.status == MigrationStatus.FINISHED:
            # The source has confirmed that it uses no volume of the server.
            continue
        gone = server_rows.by_uuid(tx, move.server_uuid, is_deleted_wanted=True)
        is_alive = server_rows.by_uuid(tx, move.server_uuid) is not None
        if is_alive or gone is None or gone.host != move.left_on:
            places.add((move.server_uuid, move.left_on))
    for each in orders.clearing(tx, uuids):
        server = server_rows.by_uuid(tx, each.server_uuid, is_deleted_wanted=True)
        if server is not None and server.host != each.host:
            places.add((each.server_uuid, each.host))
    known = hosts.by_names(tx, {host for _, host in places})
    heard = {
        name
        for name, host in known.items()
        if now - host.last_seen_at <= timedelta(seconds=SILENT_S)
    }
    return {uuid for uuid, host in places if host in heard}


def servers_built(tx: Tx, uuids: Collection[ServerId], now: datetime) -> None:
    """Mark the volumes of servers that were just built as attached."""
    for each in attachments.of_servers(tx, uuids):
        if each.status == AttachStatus.RESERVED:
            attachments.change(tx, each, {"status": AttachStatus.ATTACHED}, now)


def demand_settled(tx: Tx, server: ServerId) -> None:
    """Raise :class:`Conflict` while a volume is being attached to a server or detached from it.

    During such a change, a live migration must not begin, because its destination connects the
    volumes before the source has answered.
    """
    for each in attachments.of_servers(tx, [server]):
        if each.status in (AttachStatus.ATTACHING, AttachStatus.DETACHING):
            raise Conflict(f"Volume {each.volume_uuid} of server {server} is {each.status}.")


def server_arrived(tx: Tx, listed: Iterable[Mapping[str, Any]], now: datetime) -> None:
    """Mark the volumes in an order as attached, because the order's host has connected them.

    The server's former host may have been lost before it confirmed an attachment.
    """
    for each in listed:
        with suppress(NotFound):
            attachment, _ = attachments.get(tx, str(each["attachment_id"]), None)
            if attachment.status == AttachStatus.ATTACHING:
                attachments.change(tx, attachment, {"status": AttachStatus.ATTACHED}, now)


def are_made(tx: Tx, mine: Sequence[Attachment]) -> bool:
    """Return True if no agent still has to make a volume of these attachments.

    The statuses of the volumes do not matter, because an administrator may have reset them.
    """
    pending = orders.waiting_about(tx, [ServerId(each.volume_uuid) for each in mine])
    return all(each.kind != OrderKind.MAKE_VOLUME for each in pending)
