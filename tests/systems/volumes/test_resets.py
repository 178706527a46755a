"""Volumes whose status an administrator resets while an agent still has an order about them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.compute import Booted
from innkeeper.domain.ids import ServerId
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.volumes import AttachOrigin, VolumeBusy, VolumeStatus
from innkeeper.systems.volumes import attachments, transfers, volumes
from innkeeper.systems.volumes.attachments import NewAttachment
from tests.support.clouds import NOW, cloud_in, reported
from tests.support.volume_clouds import VolumeCloud


@pytest.fixture
def it(tmp_path: Path) -> Iterator[VolumeCloud]:
    """Two hosts of 100 GiB each."""
    made = VolumeCloud(cloud_in(tmp_path, reported("h1"), reported("h2")))
    yield made
    made.cloud.reread()
    made.cloud.judge()
    made.cloud.close()


def active(it: VolumeCloud) -> ServerId:
    """Boot a server, and have it built."""
    (booted,) = it.cloud.boot(it.cloud.request())
    assert isinstance(booted, Booted)
    it.settle_all()
    return booted.server_ids[0]


def reset(it: VolumeCloud, uuid: str, status: str) -> None:
    """Set a volume's status, as an administrator does."""
    values = {"status": status, "prior_status": None}
    it.cloud.write(lambda tx: volumes.write(tx, volumes.get(tx, uuid), values, NOW))


@pytest.mark.parametrize("is_detached", [True, False])
def test_a_reset_takes_a_forced_deletion_back_until_the_volume_is_detached(
    it: VolumeCloud, *, is_detached: bool
) -> None:
    server, volume = active(it), it.made(1)
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
    server, volume, ids = active(it), it.made(1), it.cloud.ids
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
