"""Sweeps that end attachments which nothing else would end, a limited number at a time."""

from __future__ import annotations

from datetime import datetime, timedelta

from innkeeper.domain.compute import Status
from innkeeper.domain.ids import ServerId
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.volumes import AttachStatus, BlockDevice, VolumeStatus
from innkeeper.store.queries.compute import agents, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.systems.compute.moves import resizing
from innkeeper.systems.compute.servers import force_detaching, volume_orders
from innkeeper.systems.volumes import attachments
from tests.support.clouds import AGENT, NOW
from tests.support.volume_clouds import LATER, TIMEOUT_S, WHO, VolumeCloud

MOVING = (AttachStatus.ATTACHING, AttachStatus.DETACHING)
MUCH_LATER = LATER + timedelta(seconds=TIMEOUT_S + 1)


def using(it: VolumeCloud) -> tuple[ServerId, str]:
    """Return a server and the volume that is attached to it."""
    server, volume = it.active(), it.made(1)
    it.attach(server, volume.uuid)
    it.settle_all()
    return server, volume.uuid


def stuck(it: VolumeCloud, before: datetime = LATER) -> list[str | None]:
    """Return the server of the first attachment that a sweep would detach."""
    found = it.cloud.read(lambda tx: attachments.stuck_since(tx, MOVING, before, 1))
    return [each.server_uuid for each in found]


def host_of(it: VolumeCloud, server: ServerId) -> str:
    """Return the host of a server."""
    found = it.cloud.read(lambda tx: server_rows.by_uuid(tx, server))
    return str(found.host)


def withdraw(it: VolumeCloud, server: ServerId) -> None:
    """Withdraw the orders of a server, as an evacuation does."""
    home = host_of(it, server)
    it.cloud.write(lambda tx: orders.withdraw(tx, server, home, NOW))


def test_attachments_whose_orders_wait_do_not_hold_a_sweep_up(it: VolumeCloud) -> None:
    (silent, waiting), (moved, left) = using(it), using(it)
    it.detach(silent, waiting)
    it.detach(moved, left)
    withdraw(it, moved)
    assert stuck(it) == [moved]
    it.sweep()
    assert it.kinds() == [OrderKind.DETACH_VOLUME] * 2
    assert stuck(it) == []
    it.settle_all()


def test_servers_that_move_do_not_hold_a_sweep_up(it: VolumeCloud) -> None:
    pairs = [using(it) for _ in range(2)]
    for server, volume in pairs:
        it.detach(server, volume)
        withdraw(it, server)
    (first, _), _ = pairs
    migrate(it, first)
    assert stuck(it) == [first]
    it.cloud.write(lambda tx: force_detaching.sweep(tx, LATER, LATER))
    # The first server moves, so its attachment is looked at again after the others.
    assert it.kinds() == [OrderKind.DEPART, OrderKind.DETACH_VOLUME]
    assert stuck(it) == []
    it.settle_all()
    it.sweep(MUCH_LATER)
    it.settle_all()
    assert [it.status(volume) for _, volume in pairs] == [VolumeStatus.AVAILABLE] * 2


def migrate(it: VolumeCloud, server: ServerId) -> None:
    """Begin to move a server to another host."""
    new_id = it.cloud.ids.uuid()
    it.cloud.decide(
        lambda tx, context: resizing.migrate(
            tx, context, server, WHO, seed=1, new_id=new_id, now=NOW
        ),
        NOW,
    )


def test_volumes_of_deleted_servers_are_looked_at_in_turn(it: VolumeCloud) -> None:
    made = [it.made(1).uuid for _ in range(2)]
    first, second = (it.boot(BlockDevice("volume", each)) for each in made)
    it.sweep()
    it.cloud.write(lambda tx: agents.mark_seen(tx, [AGENT.id], LATER))
    it.now = LATER
    for each in it.orders():
        it.settle(each, is_ok=False, now=LATER)
    # The hosts of the late builds may have copies, which use the volumes.
    it.delete_server(first)
    it.delete_server(second)

    def orphan() -> ServerId:
        """The server of the first attachment that a sweep would free."""
        found = it.cloud.read(lambda tx: attachments.without_server(tx, LATER, 1))
        return ServerId(found[0].server_uuid)

    # Only a sweep of deleted servers may free these volumes, because it asks for copies.
    assert stuck(it, MUCH_LATER) == []
    it.cloud.write(lambda tx: agents.mark_seen(tx, [AGENT.id], MUCH_LATER))
    assert orphan() == first
    it.cloud.write(lambda tx: volume_orders.servers_gone(tx, [first], MUCH_LATER))
    assert orphan() == second
    it.sweep(MUCH_LATER)
    it.settle_all()
    assert (it.attachments(first), it.attachments(second)) == ([], [])


def test_a_volume_is_detached_before_the_owner_confirms_a_move(it: VolumeCloud) -> None:
    server, volume = using(it)
    migrate(it, server)
    it.settle_all()
    moved = it.cloud.read(lambda tx: server_rows.by_uuid(tx, server))
    assert moved.status == Status.VERIFY_RESIZE
    it.detach(server, volume)
    it.settle_all()
    assert it.status(volume) == VolumeStatus.AVAILABLE
