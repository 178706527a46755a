"""Attach volumes to servers and detach them, and apply the results of orders about volumes.

Always true: a result is applied in the transaction that ends its order, and only if the attachment
or volume still has the status that belongs to this order. A volume that may still be connected on a
host stays ``detaching``. Its status changes only after the host's agent has confirmed that the
volume is disconnected.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Server, Status
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import ActionName, Initiator
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.volumes import (
    Attachment,
    AttachMode,
    AttachOrigin,
    AttachStatus,
    Volume,
    VolumeBusy,
    VolumeStatus,
)
from innkeeper.store.queries.compute import hosts, orders, server_actions
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers import actions, servers, volume_orders
from innkeeper.systems.compute.servers.results import Ended, Result, ResultSettings, owner_message
from innkeeper.systems.compute.servers.servers import Failed
from innkeeper.systems.volumes import attachments, volumes
from innkeeper.systems.volumes.attachments import NewAttachment

ATTACHABLE = (
    Status.ACTIVE,
    Status.SHUTOFF,
    Status.PAUSED,
    Status.SUSPENDED,
    Status.VERIFY_RESIZE,
    Status.SHELVED,
    Status.SHELVED_OFFLOADED,
)
DATA_IS_GONE = "The volume's data was deleted, although its status was reset meanwhile."
COULD_NOT_BE_MADE = "A volume of the server could not be made."


@dataclass(frozen=True, slots=True)
class WantedVolume:
    """A volume to attach. ``attachment_uuid`` is a new id."""

    attachment_uuid: str
    volume_uuid: str
    device: str | None = None
    tag: str | None = None
    deletes_volume: bool = False
    mode: str = AttachMode.READ_WRITE


def attach(
    tx: Tx,
    uuid: str,
    initiator: Initiator,
    wanted: WantedVolume,
    *,
    crosses_zones: bool,
    now: datetime,
) -> Attachment:
    """Begin to attach a volume to a server.

    A server without a host gets the volume when it is unshelved. Raises the errors of
    ``actions.admit``, :class:`NotFound` for an unknown volume, and :class:`Invalid` if the server
    cannot use the volume or its pool.
    """
    server = actions.admit(tx, uuid, initiator, ATTACHABLE)
    volume = volumes.get(tx, wanted.volume_uuid, server.project_id)
    home = None if server.host is None else hosts.by_names(tx, [server.host]).get(server.host)
    if home is not None:
        _demand_reach(tx, volume, server, home, crosses_zones=crosses_zones)
    mine = attachments.of_servers(tx, [server.uuid])
    # If a server does not boot from a volume, this path belongs to the server's root disk.
    taken = [attachments.ROOT_DEVICE, *(each.device for each in mine)]
    if wanted.device is not None and wanted.device in taken:
        raise Invalid(f"The supplied device path ({wanted.device}) is in use.")
    new = NewAttachment(
        wanted.attachment_uuid,
        volume.uuid,
        server.uuid,
        status=AttachStatus.ATTACHED if home is None else AttachStatus.ATTACHING,
        mode=wanted.mode,
        device=wanted.device or attachments.next_device(taken),
        host=server.host,
        deletes_volume=wanted.deletes_volume,
        tag=wanted.tag,
    )
    added = attachments.add(tx, volume, new, now)
    server_actions.add(tx, server.uuid, ActionName.ATTACH_VOLUME, initiator, now)
    if home is not None:
        body = order_body(tx, added)
        kind = OrderKind.ATTACH_VOLUME
        actions.order_home(tx, server, kind, body, initiator.request_id, now)
    return added


def _demand_reach(
    tx: Tx, volume: Volume, server: Server, home: Any, *, crosses_zones: bool
) -> None:
    if not crosses_zones and home.availability_zone != volume.availability_zone:
        raise Invalid(
            f"Invalid volume: Server {server.uuid} and volume {volume.uuid} are not in the same "
            f"availability_zone. The server is in {home.availability_zone}. The volume is in "
            f"{volume.availability_zone}"
        )
    if not volume_orders.reaches(tx, volume, home):
        raise Invalid(
            f"Invalid volume: the host of server {server.uuid} cannot reach the pool of volume "
            f"{volume.uuid}."
        )


def order_body(tx: Tx, attachment: Attachment) -> dict[str, Any]:
    """Return the body of an order to connect or disconnect a volume."""
    volume = volumes.get(tx, attachment.volume_uuid)
    names = volumes.pool_names(tx, [volume.provider_id] if volume.provider_id else [])
    return attachments.order_item(attachment, volume, next(iter(names.values()), None))


def detach(tx: Tx, uuid: str, initiator: Initiator, volume_uuid: str, *, now: datetime) -> None:
    """Begin to detach a volume from a server. Raises :class:`NotFound` if no attachment exists."""
    server = actions.admit(tx, uuid, initiator, (*ATTACHABLE, Status.ERROR))
    attachment = attachments.of_server(tx, server.uuid, volume_uuid)
    if attachment is None:
        raise NotFound(f"Server {server.uuid} is not attached to volume {volume_uuid}.")
    if attachment.boot_index == 0:
        raise Invalid("Cannot detach a root device volume.")
    if attachment.status != AttachStatus.ATTACHED:
        raise VolumeBusy(
            f"Invalid volume: Invalid input received: Invalid volume: Unable to detach volume. "
            f"Volume status must be 'in-use' and attach_status must be 'attached' to detach. The "
            f"attachment is {attachment.status}."
        )
    server_actions.add(tx, server.uuid, ActionName.DETACH_VOLUME, initiator, now)
    if server.host is None:
        attachments.remove(tx, [attachment], now)
        volume_orders.unattached(tx, [attachment.volume_uuid], now)
        return
    changed = attachments.change(tx, attachment, {"status": AttachStatus.DETACHING}, now)
    kind = OrderKind.DETACH_VOLUME
    actions.order_home(tx, server, kind, order_body(tx, changed), initiator.request_id, now)


def with_hosts(tx: Tx, mine: Iterable[Attachment]) -> list[Attachment]:
    """Return attachments with the hosts on which their servers are now.

    A stored attachment names the host on which it was made. The server may have moved after that.
    If an attachment was made together with its server, it names no host.
    """
    found = list(mine)
    by_agents = [each for each in found if each.origin == AttachOrigin.SERVER]
    known = server_rows.alive(tx, {each.server_uuid or "" for each in by_agents})
    hosts = {str(each.uuid): each.host for each in known}
    return [
        dataclasses.replace(each, host=hosts.get(each.server_uuid or "", each.host))
        if each.origin == AttachOrigin.SERVER
        else each
        for each in found
    ]


def update(
    tx: Tx, uuid: str, initiator: Initiator, volume_uuid: str, *, deletes: bool, now: datetime
) -> None:
    """Set whether a volume is deleted together with its server."""
    server = servers.get(tx, uuid)
    servers.demand_unlocked(server, may_override=initiator.may_override)
    attachment = attachments.of_server(tx, server.uuid, volume_uuid)
    if attachment is None:
        raise NotFound(f"Server {server.uuid} is not attached to volume {volume_uuid}.")
    attachments.change(tx, attachment, {"deletes_volume": deletes}, now)


def _subject(tx: Tx, order: OpenOrder) -> Attachment | None:
    """Return the attachment that an order is about, or ``None`` if it no longer exists."""
    body = orders.bodies(tx, [order.id])[order.id]
    try:
        return attachments.get(tx, str(body["attachment_id"]), None)[0]
    except NotFound:
        return None


def apply_attach(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of an order to attach a volume."""
    actions.end_by(tx, order, result, now)
    attachment = _subject(tx, order)
    if attachment is None or attachment.status != AttachStatus.ATTACHING:
        return
    if result.is_ok:
        attachments.change(tx, attachment, {"status": AttachStatus.ATTACHED}, now)
    elif not result.is_late:
        attachments.remove(tx, [attachment], now)
    else:
        # The volume may be connected, so it is not free until the agent has disconnected it.
        changed = attachments.change(tx, attachment, {"status": AttachStatus.DETACHING}, now)
        kind, subject = OrderKind.DETACH_VOLUME, order.server_uuid
        actions.give_order(tx, order.host, subject, kind, order_body(tx, changed), now)


def apply_detach(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of an order to detach a volume.

    If detaching failed, the volume is attached again, and a forced deletion of the volume is given
    up. But if the agent never confirmed the attachment, it stays ``detaching``.

    If detaching succeeded, the attachment ends. But if a former host of the server still has to
    clean up, the attachment stays ``detaching``. A periodic task repeats the orders of attachments
    that stay ``detaching``.
    """
    actions.end_by(tx, order, result, now)
    attachment = _subject(tx, order)
    if attachment is None or attachment.status != AttachStatus.DETACHING:
        return
    if result.is_ok:
        server = {ServerId(attachment.server_uuid or "")}
        if volume_orders.left_somewhere(tx, server, now):
            return
        attachments.remove(tx, [attachment], now)
        volume_orders.unattached(tx, [attachment.volume_uuid], now)
        return
    if attachment.attached_at is None:
        return
    attachments.change(tx, attachment, {"status": AttachStatus.ATTACHED}, now)
    volume, message = volumes.get(tx, attachment.volume_uuid), owner_message(order, result)
    if volumes.has_drop_order(tx, volume.uuid):
        orders.end_held(tx, [ServerId(volume.uuid)], message, now)
        volume = volume_orders.end_growth(tx, volume, now)
    if volume.status == VolumeStatus.DELETING:
        values = {"status": VolumeStatus.ERROR_DELETING, "fault": message}
        volumes.write(tx, volume, values, now)


def apply_makes(tx: Tx, reported: Sequence[Ended], _: ResultSettings, now: datetime) -> None:
    """Apply the results of orders to make volumes.

    If servers wait for these volumes, the builds of these servers then continue or fail. A server
    may wait for several of the volumes, so all results are stored first.
    """
    for order, result in reported:
        _apply_make(tx, order, result, now)
    for order, _result in reported:
        _go_on(tx, order.server_uuid, now)


def _apply_make(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Store whether a volume was made.

    If an administrator has reset the status meanwhile, only a failure changes the status.
    """
    volume = volumes.by_uuids(tx, [order.server_uuid]).get(order.server_uuid)
    if volume is None:
        return
    if not result.is_ok:
        message = owner_message(order, result)
        volumes.write(tx, volume, {"status": VolumeStatus.ERROR, "fault": message}, now)
    elif volume.status == VolumeStatus.CREATING:
        mine = attachments.of_volumes(tx, [volume.uuid])
        values = {"status": attachments.status_of(mine), "fault": None}
        volumes.write(tx, volume, values, now)


def _go_on(tx: Tx, volume_uuid: str, now: datetime) -> None:
    """Deliver or fail the build orders of servers that wait for a volume."""
    waiting = {
        ServerId(each.server_uuid)
        for each in attachments.of_volumes(tx, [volume_uuid])
        if each.server_uuid is not None
    }
    for order in orders.held(tx, waiting):
        mine = attachments.of_servers(tx, [order.server_uuid])
        found = volumes.by_uuids(tx, [each.volume_uuid for each in mine])
        if any(each.status == VolumeStatus.ERROR for each in found.values()):
            _fail_held(tx, order, now)
        elif volume_orders.are_made(tx, mine):
            body = orders.bodies(tx, [order.id])[order.id]
            listed = attachments.orders_body(tx, order.server_uuid)
            orders.deliver_held(tx, order, {**body, "volumes": listed}, now)


def fail_waiting(tx: Tx, volume_uuid: str, now: datetime) -> None:
    """Fail the builds of servers that wait for a volume to be made."""
    waiting = {
        ServerId(each.server_uuid)
        for each in attachments.of_volumes(tx, [volume_uuid])
        if each.server_uuid is not None
    }
    for order in orders.held(tx, waiting):
        _fail_held(tx, order, now)


def _fail_held(tx: Tx, order: OpenOrder, now: datetime) -> None:
    orders.end_held(tx, [order.server_uuid], COULD_NOT_BE_MADE, now)
    failed = Failed(order.server_uuid, order.host, COULD_NOT_BE_MADE)
    servers.fail_builds(tx, [failed], now)


def apply_grow(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of an order to make a volume larger."""
    volume = volumes.by_uuids(tx, [order.server_uuid]).get(order.server_uuid)
    if volume is not None:
        fault = None if result.is_ok else owner_message(order, result)
        status = attachments.status_of(attachments.of_volumes(tx, [volume.uuid]))
        volumes.end_extend(tx, volume, fault, status, now)


def apply_drop(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    """Apply the result of an order to delete a volume.

    If an administrator has reset the status meanwhile, the volume is kept, but its data is lost.
    """
    volume = volumes.by_uuids(tx, [order.server_uuid]).get(order.server_uuid)
    if volume is None:
        return
    is_wanted = volume.status != VolumeStatus.DELETING
    if result.is_ok and not is_wanted:
        volumes.forget(tx, [volume.uuid], now)
        return
    kept = volume_orders.end_growth(tx, volume, now)
    if result.is_ok:
        volumes.write(tx, kept, {"status": VolumeStatus.ERROR, "fault": DATA_IS_GONE}, now)
    elif not is_wanted:
        values = {"status": VolumeStatus.ERROR_DELETING, "fault": owner_message(order, result)}
        volumes.write(tx, kept, values, now)
