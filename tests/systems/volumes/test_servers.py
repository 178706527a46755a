"""Volumes of servers: attached, detached, booted with, moved with, and left by deleted servers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.compute import Booted, Status
from innkeeper.domain.errors import Conflict, Invalid, NotFound, WrongState
from innkeeper.domain.ids import ServerId
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.slices import Volumes
from innkeeper.domain.volumes import (
    AttachOrigin,
    AttachStatus,
    BlockDevice,
    VolumeBusy,
    VolumeStatus,
)
from innkeeper.store.queries.compute import agents, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.systems.compute.boot import reserving_volumes
from innkeeper.systems.compute.boot.reserving_volumes import Reserved
from innkeeper.systems.compute.hosts import work
from innkeeper.systems.compute.moves import resizing
from innkeeper.systems.compute.servers import attaching, force_detaching
from innkeeper.systems.volumes import attachments, transfers, types, volumes
from innkeeper.systems.volumes.attachments import NewAttachment
from tests.support.clouds import AGENT, NOW, Cloud, cloud_in, reported
from tests.support.pools import RACK, add_pool, join
from tests.support.volume_clouds import LATER, TIMEOUT_S, WHO, VolumeCloud


@pytest.fixture
def it(tmp_path: Path) -> Iterator[VolumeCloud]:
    """Two hosts in two zones."""
    cloud = cloud_in(
        tmp_path, reported("h1", availability_zone="east"), reported("h2", availability_zone="west")
    )
    made = VolumeCloud(cloud)
    yield made
    made.cloud.reread()
    made.cloud.judge()
    made.cloud.close()


def server_of(cloud: Cloud, **more: Any) -> ServerId:
    """Boot a server."""
    (booted,) = cloud.boot(cloud.request(**more))
    assert isinstance(booted, Booted)
    return booted.server_ids[0]


def active(it: VolumeCloud, **more: Any) -> ServerId:
    """Boot a server, and have it built."""
    uuid = server_of(it.cloud, **more)
    it.settle_all()
    return uuid


def status(it: VolumeCloud, uuid: ServerId) -> str:
    """A server's status."""
    found = it.cloud.read(lambda tx: server_rows.by_uuid(tx, uuid))
    return Status.DELETED if found is None else found.status


def test_a_volume_is_attached_and_detached_by_orders(it: VolumeCloud) -> None:
    server, volume = active(it), it.made(1)
    it.attach(server, volume.uuid)
    assert it.status(volume.uuid) == VolumeStatus.ATTACHING
    (order,) = it.orders()
    assert (order.kind, order.server_uuid) == (OrderKind.ATTACH_VOLUME, server)
    assert (order.body["volume_id"], order.body["device"]) == (volume.uuid, "/dev/vdb")
    it.settle(order)
    assert it.status(volume.uuid) == VolumeStatus.IN_USE
    with pytest.raises(VolumeBusy):
        it.delete(volume.uuid)
    it.detach(server, volume.uuid)
    assert it.status(volume.uuid) == VolumeStatus.DETACHING
    with pytest.raises(VolumeBusy):
        it.detach(server, volume.uuid)
    it.settle_all()
    assert it.status(volume.uuid) == VolumeStatus.AVAILABLE
    with pytest.raises(NotFound):
        it.detach(server, volume.uuid)


@pytest.mark.parametrize("is_last", [True, False])
def test_a_volume_that_was_detached_while_it_grew_is_available(
    it: VolumeCloud, *, is_last: bool
) -> None:
    server, volume = active(it), it.made(1)
    it.attach(server, volume.uuid)
    it.settle_all()
    it.extend(volume.uuid, 2)
    it.detach(server, volume.uuid)
    assert it.status(volume.uuid) == VolumeStatus.EXTENDING
    grow, detach = it.orders()
    assert (grow.kind, detach.kind) == (OrderKind.GROW_VOLUME, OrderKind.DETACH_VOLUME)
    for each in (detach, grow) if is_last else (grow, detach):
        it.settle(each)
    grown = it.volume(volume.uuid)
    assert (grown.status, grown.size_gb) == (VolumeStatus.AVAILABLE, 2)


def test_a_volume_does_not_take_the_place_of_the_root_disk(it: VolumeCloud) -> None:
    server, volume = active(it), it.made(1)
    with pytest.raises(Invalid, match=r"/dev/vda.* is in use"):
        it.attach(server, volume.uuid, device="/dev/vda")
    it.attach(server, volume.uuid, device="/dev/vdc")
    it.settle_all()
    assert [each.device for each in it.attachments(server)] == ["/dev/vdc"]


def test_a_boot_gives_each_volume_another_device(it: VolumeCloud) -> None:
    blank = BlockDevice("blank", size_gb=1)
    second = replace(blank, device="/dev/vdb")
    server = it.boot(blank, second)
    devices = [each.device for each in it.attachments(server)]
    assert devices == ["/dev/vdc", "/dev/vdb"]
    for wrong in ((second, second), (replace(blank, device="/dev/vda"),)):
        with pytest.raises(Invalid, match="is in use"):
            it.boot(*wrong)


def test_a_failed_attachment_frees_the_volume(it: VolumeCloud) -> None:
    server, volume = active(it), it.made(1)
    it.attach(server, volume.uuid)
    (order,) = it.orders()
    it.settle(order, is_ok=False)
    assert (it.status(volume.uuid), it.attachments(server)) == (VolumeStatus.AVAILABLE, [])


def test_a_late_attachment_is_undone_before_the_volume_is_free(it: VolumeCloud) -> None:
    server, volume = active(it), it.made(1)
    it.attach(server, volume.uuid)
    (late,) = it.orders()
    it.sweep()
    assert it.status(volume.uuid) == VolumeStatus.DETACHING
    assert it.settle(late) is False
    (undo,) = it.orders()
    assert undo.kind == OrderKind.DETACH_VOLUME
    it.settle(undo, now=LATER)
    assert it.status(volume.uuid) == VolumeStatus.AVAILABLE


def test_one_server_at_a_time_unless_the_type_allows_several(it: VolumeCloud) -> None:
    first, second = active(it), active(it)
    plain = it.made(1)
    it.attach(first, plain.uuid)
    it.settle_all()
    with pytest.raises(VolumeBusy):
        it.attach(second, plain.uuid)
    specs = {"multiattach": "<is> True"}
    it.cloud.write(
        lambda tx: types.create(tx, it.cloud.ids.uuid(), "m", None, specs, is_public=True, now=NOW)
    )
    shared = it.made(1, type_name="m")
    it.attach(first, shared.uuid)
    it.attach(second, shared.uuid)
    it.settle_all()
    with pytest.raises(VolumeBusy, match="already attached"):
        it.attach(second, shared.uuid)
    it.detach(first, shared.uuid)
    it.settle_all()
    assert it.status(shared.uuid) == VolumeStatus.IN_USE
    it.detach(second, shared.uuid)
    it.settle_all()
    assert it.status(shared.uuid) == VolumeStatus.AVAILABLE


def test_another_zone_is_refused_where_the_setting_says_so(it: VolumeCloud) -> None:
    server = active(it, availability_zone="east")
    there = it.made(1, availability_zone="west")
    it.settings = Volumes(cross_az_attach=False)
    with pytest.raises(Invalid, match="not in the same availability_zone"):
        it.attach(server, there.uuid)
    here = it.made(1, availability_zone="east")
    it.attach(server, here.uuid)
    it.settings = Volumes()
    it.attach(server, there.uuid)
    it.settle_all()


def test_a_server_boots_in_the_zone_of_its_volumes_where_the_setting_says_so(
    it: VolumeCloud,
) -> None:
    it.settings = Volumes(cross_az_attach=False)
    there, here = it.made(1, availability_zone="west"), it.made(1, availability_zone="east")
    blank = BlockDevice("blank", size_gb=1)
    server = it.boot(blank, BlockDevice("volume", there.uuid))
    found = it.cloud.read(lambda tx: server_rows.by_uuid(tx, server))
    assert found is not None
    assert found.host == "h2"
    made = [it.volume(each.volume_uuid) for each in it.attachments(server)]
    assert {each.availability_zone for each in made} == {"west"}
    it.settle_all()
    other = it.made(1, availability_zone="west")
    both = (BlockDevice("volume", other.uuid), BlockDevice("volume", here.uuid))
    with pytest.raises(Invalid, match="must be in one zone"):
        it.boot(*both)


def test_new_volumes_of_a_boot_share_a_pool_and_are_made_or_refused_together(
    it: VolumeCloud,
) -> None:
    blank, large = BlockDevice("blank", size_gb=20), BlockDevice("blank", size_gb=101)
    servers = [ServerId(it.cloud.ids.uuid()) for _ in range(2)]
    it.settings = Volumes(cross_az_attach=False)
    reserved = it.reserve(servers, blank, blank)
    made = [it.volume(uuid) for uuid in reserved.made]
    assert len(made) == 4
    assert {each.availability_zone for each in made} == {reserved.zone}, "80 GiB fit into one zone"
    assert [order.body["volume_id"] for order in it.orders()] == list(reserved.made)
    with pytest.raises(Conflict, match="PoolCapacityFilter"):
        it.reserve([ServerId(it.cloud.ids.uuid())], blank, large)
    assert len(it.orders()) == 4
    it.cloud.write(lambda tx: reserving_volumes.undo(tx, servers, reserved, NOW))
    it.settle_all()
    assert [it.status(uuid) for uuid in reserved.made] == [None] * 4


def test_a_server_that_is_being_built_takes_no_volume(it: VolumeCloud) -> None:
    volume = it.made(1)
    server = server_of(it.cloud)
    with pytest.raises(WrongState):
        it.attach(server, volume.uuid)


def test_a_server_takes_only_volumes_that_its_host_reaches(it: VolumeCloud) -> None:
    it.settings = Volumes(volumes_on_hosts=False)
    host = it.cloud.host("h2")
    it.cloud.write(lambda tx: join(tx, host.provider_uuid, RACK))
    it.cloud.write(add_pool)
    volume = it.made(1)
    far = active(it, forced_host="h1")
    with pytest.raises(Invalid, match="cannot reach the pool"):
        it.attach(far, volume.uuid)
    near = it.boot(BlockDevice("volume", volume.uuid))
    found = it.cloud.read(lambda tx: server_rows.by_uuid(tx, near))
    assert found is not None
    assert found.host == "h2"
    it.settle_all()


def test_a_deleted_server_frees_its_volumes_or_deletes_them(it: VolumeCloud) -> None:
    server = active(it)
    kept, doomed = it.made(1), it.made(1)
    it.attach(server, kept.uuid)
    it.attach(server, doomed.uuid, deletes_volume=True)
    it.settle_all()
    it.delete_server(server)
    assert it.status(kept.uuid) == VolumeStatus.IN_USE
    (destroy,) = it.orders()
    it.settle(destroy)
    assert it.status(kept.uuid) == VolumeStatus.AVAILABLE
    assert it.status(doomed.uuid) == VolumeStatus.DELETING
    assert it.kinds() == [OrderKind.DROP_VOLUME]
    it.settle_all()
    assert it.status(doomed.uuid) is None


def test_a_build_waits_until_its_volumes_are_made(it: VolumeCloud) -> None:
    blank = BlockDevice("blank", size_gb=2, deletes_volume=True)
    server = it.boot(blank, blank)
    first, second = it.orders()
    assert {first.kind, second.kind} == {OrderKind.MAKE_VOLUME}
    it.settle(first)
    assert it.kinds() == [OrderKind.MAKE_VOLUME]
    it.settle(second)
    (build,) = it.orders()
    assert build.kind == OrderKind.BUILD
    assert [each["device"] for each in build.body["volumes"]] == ["/dev/vdb", "/dev/vdc"]
    it.settle(build)
    assert status(it, server) == Status.ACTIVE
    assert {each.status for each in it.attachments(server)} == {AttachStatus.ATTACHED}
    it.delete_server(server)
    it.settle_all()
    assert it.attachments(server) == []


def test_an_agent_that_saw_later_orders_gets_the_build_at_once(it: VolumeCloud) -> None:
    blank = BlockDevice("blank", size_gb=2, deletes_volume=True)
    first = it.boot(blank)
    it.boot(blank)
    mine, other = it.orders()
    seen = max(mine.id, other.id)
    for each in (mine, other):
        it.settle(each)
    found = it.cloud.read(lambda tx: work.waiting(tx, AGENT.id, seen, 1000))
    assert [each.kind for each in found] == [OrderKind.BUILD] * 2
    assert found[0].server_uuid == first
    it.settle_all()
    assert status(it, first) == Status.ACTIVE


def test_a_volume_that_cannot_be_made_fails_its_server(it: VolumeCloud) -> None:
    server = it.boot(BlockDevice("blank", size_gb=2, deletes_volume=True))
    (make,) = it.orders()
    it.settle(make, is_ok=False)
    assert status(it, server) == Status.ERROR
    assert it.orders() == []
    it.delete_server(server)
    it.settle_all()
    assert it.held(make.server_uuid) == 0


def test_a_server_is_deleted_while_its_build_waits(it: VolumeCloud) -> None:
    server = it.boot(BlockDevice("blank", size_gb=2, deletes_volume=True))
    it.delete_server(server)
    it.settle_all()
    assert status(it, server) == Status.DELETED
    assert it.cloud.read(lambda tx: orders.held(tx, [server])) == []


def test_a_server_boots_from_a_volume(it: VolumeCloud) -> None:
    volume = it.made(1)
    root = BlockDevice("volume", volume.uuid, boot_index=0)
    with pytest.raises(Invalid, match="not bootable"):
        it.boot(root)
    assert it.status(volume.uuid) == VolumeStatus.AVAILABLE
    server = it.boot(BlockDevice("volume", volume.uuid))
    (build,) = it.orders()
    assert build.body["volumes"][0]["volume_id"] == volume.uuid
    it.settle(build)
    assert it.status(volume.uuid) == VolumeStatus.IN_USE
    it.detach(server, volume.uuid)
    it.settle_all()


def test_a_server_that_boots_from_a_volume_needs_no_root_disk(it: VolumeCloud) -> None:
    blank = BlockDevice("blank", size_gb=2, boot_index=0)
    server = it.boot(blank, is_volume_backed=True)
    it.settle_all()
    assert it.held(server) == 1 + 1024, "one vcpu, 1 GiB of memory, and no disk"
    assert it.attachments(server)[0].device == "/dev/vda"
    with pytest.raises(Invalid, match="root device"):
        it.detach(server, it.attachments(server)[0].volume_uuid)


def test_what_clients_claim_about_a_server_does_not_affect_it(it: VolumeCloud) -> None:
    server, theirs = active(it), it.made(1, project_id="other")
    claimed = NewAttachment(
        it.cloud.ids.uuid(),
        theirs.uuid,
        server,
        origin=AttachOrigin.CLIENT,
        device="/dev/vdb",
        deletes_volume=False,
    )
    it.cloud.write(lambda tx: attachments.add(tx, theirs, claimed, NOW))
    mine = it.made(1)
    it.attach(server, mine.uuid)
    assert [each.device for each in it.attachments(server)] == ["/dev/vdb"]
    it.settle_all()
    it.delete_server(server)
    it.settle_all()
    assert it.status(theirs.uuid) == VolumeStatus.RESERVED


def test_a_refused_boot_leaves_nothing(it: VolumeCloud) -> None:
    volume, servers = it.made(1), (ServerId(it.cloud.ids.uuid()),)
    devices = (BlockDevice("volume", volume.uuid), BlockDevice("blank", size_gb=2))
    reserved = it.reserve(servers, *devices)
    (made,) = reserved.made
    assert it.status(volume.uuid) == VolumeStatus.RESERVED
    it.cloud.write(lambda tx: reserving_volumes.undo(tx, servers, reserved, NOW))
    it.settle_all()
    assert (it.status(volume.uuid), it.status(made)) == (VolumeStatus.AVAILABLE, None)


def test_volumes_of_a_late_build_are_free_once_its_host_is_clean(it: VolumeCloud) -> None:
    volume = it.made(1)
    disk = BlockDevice("blank", size_gb=2, boot_index=0, deletes_volume=True)
    server = it.boot(disk, BlockDevice("volume", volume.uuid))
    for each in it.orders():
        if each.kind == OrderKind.MAKE_VOLUME:
            it.settle(each)
    (late,) = it.orders()
    assert late.kind == OrderKind.BUILD
    it.sweep()
    it.cloud.write(lambda tx: agents.mark_seen(tx, [AGENT.id], LATER))
    it.now = LATER
    (undo,) = it.orders()
    it.settle(undo, is_ok=False, now=LATER)
    it.delete_server(server)
    assert status(it, server) == Status.DELETED
    # The server's host may still have the connections.
    assert it.status(volume.uuid) == VolumeStatus.DETACHING
    soon = LATER + timedelta(seconds=TIMEOUT_S + 1)
    it.cloud.write(lambda tx: agents.mark_seen(tx, [AGENT.id], soon))
    it.sweep(soon)
    assert it.status(volume.uuid) == VolumeStatus.DETACHING
    (again,) = it.orders()
    assert again.kind == OrderKind.DESTROY
    it.settle(again, now=soon)
    assert it.status(volume.uuid) == VolumeStatus.AVAILABLE
    it.settle_all()


def test_several_new_volumes_of_a_boot_share_pools(it: VolumeCloud) -> None:
    servers = tuple(ServerId(it.cloud.ids.uuid()) for _ in range(2))
    devices = [BlockDevice("blank", size_gb=30)] * 3
    reserved = it.reserve(servers, *devices)
    assert len(reserved.made) == len(servers) * len(devices)
    assert {it.status(each) for each in reserved.made} == {VolumeStatus.CREATING}
    it.cloud.write(lambda tx: reserving_volumes.undo(tx, servers, reserved, NOW))
    # Two pools of 100 GB have room for six volumes, but not for eight.
    with pytest.raises(Conflict, match="No valid backend"):
        it.reserve(servers, *[BlockDevice("blank", size_gb=30)] * 4)
    it.settle_all()


def test_a_server_that_was_booted_after_all_keeps_its_volumes(it: VolumeCloud) -> None:
    server = it.boot(BlockDevice("blank", size_gb=2))
    (mine,) = it.attachments(server)
    reserved = Reserved((mine.uuid,), (mine.volume_uuid,), None)
    it.cloud.write(lambda tx: reserving_volumes.undo(tx, [server], reserved, NOW))
    it.settle_all()
    assert it.status(mine.volume_uuid) == VolumeStatus.IN_USE


@pytest.mark.parametrize("crosses", [True, False])
def test_a_repeated_boot_takes_the_reservation_over(it: VolumeCloud, *, crosses: bool) -> None:
    it.settings = Volumes(cross_az_attach=crosses)
    volume, servers = it.made(1), (ServerId(it.cloud.ids.uuid()),)
    devices = (BlockDevice("volume", volume.uuid), BlockDevice("blank", size_gb=2))
    first = it.reserve(servers, *devices)
    second = it.reserve(servers, *devices, is_repeat=True)
    assert (second.made, second.zone) == (first.made, first.zone)
    assert [each.uuid for each in it.attachments(servers[0])] == list(second.attachments)
    # If the process of the first attempt was only suspended, the attempt may go on, and is refused.
    it.cloud.write(lambda tx: reserving_volumes.undo(tx, servers, first, NOW))
    assert len(it.attachments(servers[0])) == len(devices)
    with pytest.raises(Conflict, match="Another attempt"):
        it.reserve(servers, *devices)
    it.cloud.write(lambda tx: reserving_volumes.undo(tx, servers, second, NOW))
    it.settle_all()
    assert (it.status(volume.uuid), it.status(*first.made)) == (VolumeStatus.AVAILABLE, None)


def test_a_repeated_boot_of_booted_servers_reserves_nothing(it: VolumeCloud) -> None:
    blank, other = BlockDevice("blank", size_gb=1), ServerId(it.cloud.ids.uuid())
    server = it.boot(blank)
    assert it.reserve([server], blank, is_repeat=True) == Reserved((), (), None)
    with pytest.raises(Conflict, match="Another attempt"):
        it.reserve([server, other], blank)
    left = it.reserve([other], blank)
    assert it.reserve([server, other], blank, is_repeat=True).made == left.made
    assert len(it.attachments(server)) == 1


def test_a_reservation_that_was_undone_in_part_is_not_taken_over(it: VolumeCloud) -> None:
    blank, servers = BlockDevice("blank", size_gb=1), [ServerId(it.cloud.ids.uuid())]
    reserved = it.reserve(servers, blank, blank)
    part = replace(reserved, attachments=reserved.attachments[1:])
    it.cloud.write(lambda tx: reserving_volumes.undo(tx, servers, part, NOW))
    with pytest.raises(Conflict, match="Another attempt"):
        it.reserve(servers, blank, blank, is_repeat=True)
    it.settle_all()


def test_a_reservation_without_a_boot_is_swept_away(it: VolumeCloud) -> None:
    volume = it.made(1)
    it.reserve((ServerId(it.cloud.ids.uuid()),), BlockDevice("volume", volume.uuid))
    it.sweep(NOW)
    assert it.status(volume.uuid) == VolumeStatus.RESERVED
    it.sweep()
    assert it.status(volume.uuid) == VolumeStatus.AVAILABLE


def test_too_little_capacity_for_a_new_volume_refuses_the_boot(it: VolumeCloud) -> None:
    with pytest.raises(Conflict, match="No valid backend"):
        it.boot(BlockDevice("blank", size_gb=101))
    assert it.orders() == []


def test_a_moving_server_takes_its_volumes_along(it: VolumeCloud) -> None:
    server, volume = active(it), it.made(1)
    it.attach(server, volume.uuid)
    it.settle_all()
    new_id = it.cloud.ids.uuid()
    it.cloud.decide(
        lambda tx, context: resizing.migrate(
            tx, context, server, WHO, seed=1, new_id=new_id, now=NOW
        ),
        NOW,
    )
    (depart,) = it.orders()
    assert "volumes" not in depart.body
    it.settle(depart)
    (arrive,) = it.orders()
    assert [each["volume_id"] for each in arrive.body["volumes"]] == [volume.uuid]
    it.settle(arrive)
    assert it.status(volume.uuid) == VolumeStatus.IN_USE
    (attachment,) = it.attachments(server)
    (shown,) = it.cloud.read(lambda tx: attaching.with_hosts(tx, [attachment]))
    moved = it.cloud.read(lambda tx: server_rows.by_uuid(tx, server))
    assert shown == replace(attachment, host=moved.host)
    assert shown.host != attachment.host
    it.delete_server(server)
    it.settle_all()
    assert it.cloud.read(lambda tx: attaching.with_hosts(tx, [attachment])) == [attachment]


def test_an_attachment_whose_order_was_withdrawn_is_undone_by_its_agent(it: VolumeCloud) -> None:
    server, volume = active(it), it.made(1)
    it.attach(server, volume.uuid)
    found = it.cloud.read(lambda tx: server_rows.by_uuid(tx, server))
    assert found is not None
    it.cloud.write(lambda tx: orders.withdraw(tx, server, found.host, NOW))
    it.sweep()
    # The agent may have carried out the order before it was withdrawn.
    assert (it.status(volume.uuid), it.kinds()) == (
        VolumeStatus.DETACHING,
        [OrderKind.DETACH_VOLUME],
    )
    it.settle_all()
    assert (it.status(volume.uuid), it.attachments(server)) == (VolumeStatus.AVAILABLE, [])


def test_a_volume_that_is_deleted_by_force_is_detached_first(it: VolumeCloud) -> None:
    server, volume = active(it), it.made(1)
    it.attach(server, volume.uuid)
    it.settle_all()
    it.delete(volume.uuid, is_forced=True)
    assert it.status(volume.uuid) == VolumeStatus.DELETING
    (order,) = it.orders()
    assert (order.kind, order.server_uuid) == (OrderKind.DETACH_VOLUME, server)
    it.settle(order)
    (order,) = it.orders()
    assert (order.kind, order.server_uuid) == (OrderKind.DROP_VOLUME, volume.uuid)
    it.settle(order)
    assert (it.status(volume.uuid), it.held(volume.uuid)) == (None, 0)


def test_a_volume_that_cannot_be_detached_is_not_deleted(it: VolumeCloud) -> None:
    server, volume = active(it), it.made(1)
    it.attach(server, volume.uuid)
    it.settle_all()
    it.delete(volume.uuid, is_forced=True)
    (order,) = it.orders()
    it.settle(order, is_ok=False)
    assert it.status(volume.uuid) == VolumeStatus.ERROR_DELETING
    assert (it.orders(), len(it.attachments(server))) == ([], 1)
    it.delete(volume.uuid, is_forced=True)
    it.settle_all()
    assert it.status(volume.uuid) is None


def test_a_volume_that_is_deleted_by_force_does_not_survive_its_server(it: VolumeCloud) -> None:
    server, volume = active(it), it.made(1)
    it.attach(server, volume.uuid)
    it.settle_all()
    it.delete(volume.uuid, is_forced=True)
    it.delete_server(server)
    destroy = next(each for each in it.orders() if each.kind == OrderKind.DESTROY)
    it.settle(destroy)
    assert OrderKind.DROP_VOLUME in it.kinds()
    it.settle_all()
    assert it.status(volume.uuid) is None


def test_the_disk_that_a_server_boots_from_is_not_deleted_by_force(it: VolumeCloud) -> None:
    root = it.made(1)
    it.cloud.write(lambda tx: volumes.write(tx, root, {"is_bootable": True}, NOW))
    server = it.boot(BlockDevice("volume", root.uuid, boot_index=0))
    with pytest.raises(VolumeBusy, match="Retry later"):
        it.delete(root.uuid, is_forced=True)
    it.settle_all()
    with pytest.raises(Invalid, match="Delete the server first"):
        it.delete(root.uuid, is_forced=True)
    assert (it.status(root.uuid), it.orders()) == (VolumeStatus.IN_USE, [])
    it.delete_server(server)


def test_an_administrator_detaches_by_force(it: VolumeCloud) -> None:
    server, volume = active(it), it.made(1)
    it.attach(server, volume.uuid)
    it.settle_all()

    def force(attachment: str | None = None) -> None:
        force_detaching_of(it, volume.uuid, attachment)

    with pytest.raises(NotFound):
        force("70000000-0000-4000-8000-000000000000")
    force()
    force()
    assert it.kinds() == [OrderKind.DETACH_VOLUME]
    it.settle_all()
    assert it.status(volume.uuid) == VolumeStatus.AVAILABLE


def force_detaching_of(it: VolumeCloud, volume: str, attachment: str | None) -> None:
    """Detach a volume by force."""
    it.cloud.write(lambda tx: force_detaching.force_detach(tx, volume, None, attachment, NOW))


def test_a_reset_status_does_not_give_an_attached_volume_away(it: VolumeCloud) -> None:
    first, second, volume = active(it), active(it), it.made(1)
    it.attach(first, volume.uuid)
    it.settle_all()
    used = it.volume(volume.uuid)
    it.cloud.write(lambda tx: volumes.write(tx, used, {"status": VolumeStatus.AVAILABLE}, NOW))
    with pytest.raises(VolumeBusy):
        it.attach(second, volume.uuid)
    reset = it.volume(volume.uuid)
    ids = it.cloud.ids
    with pytest.raises(VolumeBusy):
        it.cloud.write(lambda tx: transfers.create(tx, reset, ids.uuid(), None, "key", "salt", NOW))
    it.detach(first, volume.uuid)
    it.settle_all()


def test_an_attachment_that_was_never_confirmed_is_undone_until_it_is(it: VolumeCloud) -> None:
    server, volume = active(it), it.made(1)
    it.attach(server, volume.uuid)
    it.sweep()
    (undo,) = it.orders()
    it.settle(undo, is_ok=False, now=LATER)
    assert (it.status(volume.uuid), it.orders()) == (VolumeStatus.DETACHING, [])
    it.sweep(LATER + timedelta(seconds=TIMEOUT_S + 1))
    (again,) = it.orders()
    assert again.kind == OrderKind.DETACH_VOLUME
    it.settle(again, now=LATER)
    assert it.status(volume.uuid) == VolumeStatus.AVAILABLE
