"""Volumes whose status an administrator resets while an agent still has an order about them."""

from __future__ import annotations

import pytest

from innkeeper.domain.compute import Status
from innkeeper.domain.ids import ServerId
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.volumes import AttachOrigin, BlockDevice, VolumeBusy, VolumeStatus
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.systems.compute.hosts import work
from innkeeper.systems.compute.servers.results import Result
from innkeeper.systems.volumes import attachments, transfers, volumes
from innkeeper.systems.volumes.attachments import NewAttachment
from tests.support.clouds import AGENT, NOW
from tests.support.volume_clouds import VolumeCloud

BLANK = BlockDevice("blank", size_gb=2)


def status_of(it: VolumeCloud, server: ServerId) -> str:
    """A server's status."""
    found = it.cloud.read(lambda tx: server_rows.by_uuid(tx, server))
    return Status.DELETED if found is None else found.status


def reset(it: VolumeCloud, uuid: str, status: str) -> None:
    """Set a volume's status, as an administrator does."""
    values = {"status": status, "prior_status": None}
    it.cloud.write(lambda tx: volumes.write(tx, volumes.get(tx, uuid), values, NOW))


@pytest.mark.parametrize("is_detached", [True, False])
def test_a_reset_takes_a_forced_deletion_back_until_the_volume_is_detached(
    it: VolumeCloud, *, is_detached: bool
) -> None:
    server, volume = it.active(), it.made(1)
    it.attach(server, volume.uuid)
    it.settle_all()
    it.delete(volume.uuid, is_forced=True)
    reset(it, volume.uuid, VolumeStatus.IN_USE)
    (detach,) = it.orders()
    it.settle(detach, is_ok=is_detached)
    assert it.orders() == []
    if not is_detached:
        assert it.status(volume.uuid) == VolumeStatus.IN_USE
        it.detach(server, volume.uuid)
        it.settle_all()
    assert it.status(volume.uuid) == VolumeStatus.AVAILABLE
    it.attach(server, volume.uuid)
    it.settle_all()
    assert it.status(volume.uuid) == VolumeStatus.IN_USE


def test_a_volume_is_not_used_again_while_an_agent_may_delete_it(it: VolumeCloud) -> None:
    server, volume, ids = it.active(), it.made(1), it.cloud.ids
    it.delete(volume.uuid)
    (drop,) = it.orders()
    reset(it, volume.uuid, VolumeStatus.AVAILABLE)
    kept = it.volume(volume.uuid)
    of_client = NewAttachment(ids.uuid(), volume.uuid, server, origin=AttachOrigin.CLIENT)
    with pytest.raises(VolumeBusy, match="still being deleted"):
        it.attach(server, volume.uuid)
    with pytest.raises(VolumeBusy, match="still being deleted"):
        it.cloud.write(lambda tx: attachments.add(tx, kept, of_client, NOW))
    with pytest.raises(VolumeBusy, match="still being deleted"):
        it.cloud.write(lambda tx: transfers.create(tx, kept, ids.uuid(), None, "key", "salt", NOW))
    with pytest.raises(VolumeBusy, match="still being deleted"):
        it.extend(volume.uuid, 2)
    assert it.kinds() == [OrderKind.DROP_VOLUME]
    it.settle(drop, is_ok=False)
    assert it.status(volume.uuid) == VolumeStatus.AVAILABLE
    it.attach(server, volume.uuid)
    it.settle_all()
    assert it.status(volume.uuid) == VolumeStatus.IN_USE


@pytest.mark.parametrize("is_made", [True, False])
@pytest.mark.parametrize(
    "status", [VolumeStatus.AVAILABLE, VolumeStatus.RESERVED, VolumeStatus.ERROR]
)
def test_a_build_does_not_wait_for_a_status_that_was_reset(
    it: VolumeCloud, status: str, *, is_made: bool
) -> None:
    server = it.boot(BLANK)
    (mine,) = it.attachments(server)
    reset(it, mine.volume_uuid, status)
    (make,) = it.orders()
    it.settle(make, is_ok=is_made)
    it.settle_all()
    works = is_made and status != VolumeStatus.ERROR
    assert status_of(it, server) == (Status.ACTIVE if works else Status.ERROR)
    assert it.status(mine.volume_uuid) == (VolumeStatus.IN_USE if works else VolumeStatus.ERROR)


@pytest.mark.parametrize(
    "statuses",
    [
        (VolumeStatus.AVAILABLE, VolumeStatus.CREATING),
        (VolumeStatus.CREATING, VolumeStatus.AVAILABLE),
    ],
)
def test_a_build_waits_for_orders_to_make_volumes_and_for_no_status(
    it: VolumeCloud, statuses: tuple[str, str]
) -> None:
    server = it.boot(BLANK, BLANK)
    first, second = it.orders()
    for each, new in zip((first, second), statuses, strict=True):
        reset(it, each.server_uuid, new)
    it.settle(first)
    assert it.kinds() == [OrderKind.MAKE_VOLUME]
    reset(it, first.server_uuid, VolumeStatus.CREATING)
    it.settle(second)
    assert it.kinds() == [OrderKind.BUILD]
    it.settle_all()
    assert status_of(it, server) == Status.ACTIVE
    reset(it, first.server_uuid, VolumeStatus.IN_USE)


@pytest.mark.parametrize("failed", [0, 1])
def test_volumes_that_are_reported_together_are_judged_together(
    it: VolumeCloud, failed: int
) -> None:
    server = it.boot(BLANK, BLANK)
    results = [
        Result(each.id, number != failed, "broken") for number, each in enumerate(it.orders())
    ]
    it.cloud.write(lambda tx: work.record(tx, AGENT.id, results, NOW))
    assert it.orders() == []
    assert status_of(it, server) == Status.ERROR


@pytest.mark.parametrize("status", [VolumeStatus.AVAILABLE, VolumeStatus.MAINTENANCE])
def test_a_reset_status_does_not_hide_that_a_volume_was_never_made(
    it: VolumeCloud, status: str
) -> None:
    volume = it.create(1)
    reset(it, volume.uuid, status)
    (make,) = it.orders()
    it.settle(make, is_ok=False)
    failed = it.volume(volume.uuid)
    assert failed.status == VolumeStatus.ERROR
    assert failed.fault == "A host could not carry out the order 'make-volume'."


@pytest.mark.parametrize("is_reset", [True, False])
@pytest.mark.parametrize("is_dropped", [True, False])
def test_a_kept_volume_no_longer_grows_after_its_drop(
    it: VolumeCloud, *, is_reset: bool, is_dropped: bool
) -> None:
    volume = it.made(5)
    it.extend(volume.uuid, 20)
    it.delete(volume.uuid, is_forced=True)
    if is_reset:
        reset(it, volume.uuid, VolumeStatus.AVAILABLE)
    (drop,) = it.orders()
    assert (drop.kind, it.held(volume.uuid)) == (OrderKind.DROP_VOLUME, 20)
    it.settle(drop, is_ok=is_dropped)
    if is_dropped and not is_reset:
        assert (it.status(volume.uuid), it.held(volume.uuid)) == (None, 0)
        return
    assert it.held(volume.uuid) == 5
    can_be_extended_again(it, volume.uuid)


@pytest.mark.parametrize("is_reset", [True, False])
def test_a_kept_volume_no_longer_grows_after_it_was_to_be_detached(
    it: VolumeCloud, *, is_reset: bool
) -> None:
    server, volume = it.active(), it.made(5)
    it.attach(server, volume.uuid)
    it.settle_all()
    it.extend(volume.uuid, 20)
    it.delete(volume.uuid, is_forced=True)
    if is_reset:
        reset(it, volume.uuid, VolumeStatus.IN_USE)
    (detach,) = it.orders()
    it.settle(detach, is_ok=is_reset)
    assert (it.held(volume.uuid), it.orders()) == (5, [])
    assert it.status(volume.uuid) == (
        VolumeStatus.AVAILABLE if is_reset else VolumeStatus.ERROR_DELETING
    )
    can_be_extended_again(it, volume.uuid)


def can_be_extended_again(it: VolumeCloud, uuid: str) -> None:
    """Check that a volume can be extended after its status was reset."""
    reset(it, uuid, VolumeStatus.AVAILABLE)
    it.extend(uuid, 21)
    it.settle_all()
    assert (it.volume(uuid).size_gb, it.held(uuid)) == (21, 21)


def test_a_volume_that_was_only_set_to_deleting_can_be_deleted(it: VolumeCloud) -> None:
    volume = it.made(1)
    reset(it, volume.uuid, VolumeStatus.DELETING)
    with pytest.raises(VolumeBusy, match="The status is deleting"):
        it.delete(volume.uuid)
    it.delete(volume.uuid, is_forced=True)
    it.delete(volume.uuid, is_forced=True)
    it.delete(volume.uuid)
    assert it.kinds() == [OrderKind.DROP_VOLUME]
    it.settle_all()
    assert it.status(volume.uuid) is None
