"""Detach volumes in any status from servers, for administrators.

Always true: if a volume may be connected on a host, the host's agent gets an order to disconnect
the volume. The volume cannot be attached elsewhere or deleted before the agent has confirmed.
"""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.ids import ServerId
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.volumes import Attachment, AttachOrigin, AttachStatus, Volume, VolumeBusy
from innkeeper.store.queries.compute import orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers import actions, attaching, volume_orders
from innkeeper.systems.volumes import attachments, volumes

SWEEP_MAX = 100


def force_detach(
    tx: Tx, uuid: str, project_id: str | None, attachment_uuid: str | None, now: datetime
) -> None:
    """Detach a volume from one server, or from a client outside this service.

    Raises :class:`NotFound` for an unknown attachment, and the errors of :func:`disconnect`. Raises
    :class:`Invalid` if the volume has several attachments and the request names no attachment.
    """
    volume = volumes.get(tx, uuid, project_id)
    mine = attachments.of_volumes(tx, [volume.uuid])
    chosen = [each for each in mine if attachment_uuid in (None, each.uuid)]
    if not chosen:
        raise NotFound(f"Volume {volume.uuid} has no such attachment.")
    if len(chosen) > 1:
        raise Invalid(attachments.ID_IS_REQUIRED)
    disconnect(tx, chosen[0], now)


def disconnect(tx: Tx, attachment: Attachment, now: datetime) -> None:
    """Begin to detach a volume.

    A volume that is connected nowhere is detached at once. Raises :class:`VolumeBusy` while the
    server is being built or moved. Raises :class:`Invalid` for the volume that the server booted
    from.
    """
    subject = ServerId(attachment.server_uuid or "")
    server = server_rows.by_uuid(tx, subject)
    if attachment.origin != AttachOrigin.SERVER or server is None or server.host is None:
        attachments.remove(tx, [attachment], now)
        volume_orders.unattached(tx, [attachment.volume_uuid], now)
        return
    if server.task_state is not None:
        raise VolumeBusy(
            f"Invalid volume: server {server.uuid} uses volume {attachment.volume_uuid}, and is "
            f"{server.task_state}. Retry later."
        )
    if attachment.boot_index == 0:
        raise Invalid(
            f"Invalid volume: server {server.uuid} boots from volume {attachment.volume_uuid}. "
            "Delete the server first."
        )
    if attachment.status == AttachStatus.DETACHING and _is_ordered(tx, attachment):
        return
    values = {"status": AttachStatus.DETACHING, "host": server.host}
    changed = attachments.change(tx, attachment, values, now)
    body = attaching.order_body(tx, changed)
    actions.order_home(tx, server, OrderKind.DETACH_VOLUME, body, None, now)


def _is_ordered(tx: Tx, attachment: Attachment) -> bool:
    waiting = orders.waiting_about(tx, [ServerId(attachment.server_uuid or "")])
    numbers = [each.id for each in waiting if each.kind == OrderKind.DETACH_VOLUME]
    found = orders.bodies(tx, numbers).values()
    return any(each.get("attachment_id") == attachment.uuid for each in found)


def release(tx: Tx, volume: Volume, now: datetime) -> None:
    """Begin to detach a volume from all servers, because it is about to be deleted by force.

    If servers wait for the volume to be made, the builds of these servers fail. Raises the errors
    of :func:`disconnect`.
    """
    attaching.fail_waiting(tx, volume.uuid, now)
    for each in attachments.of_volumes(tx, [volume.uuid]):
        if each.origin == AttachOrigin.SERVER:
            disconnect(tx, each, now)


def sweep(tx: Tx, before: datetime, now: datetime) -> int:
    """Clean up attachments that nothing else would end. Return the number of attachments.

    These are attachments of servers that do not exist, and attachments whose order was withdrawn
    because their server moved. The agent may have carried out such an order before it was
    withdrawn.
    """
    orphans = attachments.without_server(tx, before, SWEEP_MAX)
    for uuid in sorted({each.server_uuid for each in orphans if each.server_uuid is not None}):
        volume_orders.servers_gone(tx, [ServerId(uuid)], now)
    moving = (AttachStatus.ATTACHING, AttachStatus.DETACHING)
    stuck = attachments.stuck_since(tx, moving, before, SWEEP_MAX)
    for each in stuck:
        try:
            disconnect(tx, each, now)
        except VolumeBusy:
            # The server is being built or moved. A later sweep tries again, after the others.
            attachments.change(tx, each, {}, now)
    return len(orphans) + len(stuck)
