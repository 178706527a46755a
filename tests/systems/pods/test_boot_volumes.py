"""Rows of volumes that pods make for servers: they count before their ids are known."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from innkeeper.domain.door import SERVER, VOLUME, DoorLimits
from innkeeper.domain.errors import VolumeQuotaExceeded
from innkeeper.domain.pods import PodRouting
from innkeeper.store.queries.pods import routings as routing_rows
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.pods import boot_volumes, routings
from innkeeper.systems.pods.boot_volumes import BootVolume, ShownVolume
from tests.support.pod_rows import add_pod
from tests.support.stores import NOW

MARK, ONE, TWO, DISK, OTHER = (f"c0000000-0000-4000-8000-{n:012d}" for n in range(5))
FREE = DoorLimits(-1)
LATER = NOW + timedelta(seconds=1)


def begun(tx: Tx, *sizes: int, number: int = 1, limits: DoorLimits = FREE) -> PodRouting:
    """Begin a create of servers with new volumes of these sizes."""
    pod = add_pod(tx, 1)
    wanted = PodRouting(0, MARK, None, pod.id, "a", SERVER, NOW, NOW, user_id="u", number=number)
    made = routings.begin(tx, wanted, FREE)
    boot_volumes.begin(tx, made, [BootVolume(each, limits, image_id="i") for each in sizes])
    return made


def used(tx: Tx) -> tuple[int, int]:
    """Return the number of volumes that count, and their size."""
    found = routings.used(tx, "a", VOLUME)
    return found[0], found[3]


def test_they_count_with_the_create_and_end_with_it(store: Store) -> None:
    with store.write() as tx:
        made = begun(tx, 2, 3, number=2)
        assert used(tx) == (4, 10)
        boot_volumes.settle(tx, made, (), NOW)
        assert used(tx) == (0, 0)


def test_they_are_refused_if_they_exceed_a_quota(store: Store) -> None:
    with store.write() as tx, pytest.raises(VolumeQuotaExceeded):
        begun(tx, 2, 3, limits=DoorLimits(2, size_gb=4))


def test_each_server_gets_its_own_and_what_is_left_ends_when_it_is_at_rest(store: Store) -> None:
    with store.write() as tx:
        made = begun(tx, 2, 3, number=2)
        routings.settle(tx, made, [ONE, TWO], NOW)
        boot_volumes.settle(tx, made, [ONE, TWO], NOW)
        boot_volumes.settle(tx, made, [ONE, TWO], NOW)
        assert used(tx) == (4, 10)
        assert len(boot_volumes.open_of(tx, ONE)) == 2
        boot_volumes.learn(tx, ONE, [ShownVolume(DISK, 3)], LATER, is_last=False)
        boot_volumes.learn(tx, ONE, [ShownVolume(DISK, 3)], LATER, is_last=False)
        assert used(tx) == (4, 10)
        (left,) = boot_volumes.open_of(tx, ONE)
        assert left.size_gb == 2
        volume = routings.place_of(tx, DISK, VOLUME)
        assert (volume.project_id, volume.user_id, volume.image_id) == ("a", "u", "i")
        assert (volume.server_uuid, volume.created_at) == (ONE, NOW)
        # The pod has made the other volume larger.
        boot_volumes.learn(tx, ONE, [ShownVolume(OTHER, 4)], LATER, is_last=True)
        boot_volumes.learn(tx, TWO, [], LATER, is_last=True)
        assert used(tx) == (2, 7)
        assert routing_rows.open_ones(tx, [made.pod_id], 10) == []


def test_volumes_of_a_server_that_is_gone_are_looked_at(store: Store) -> None:
    with store.write() as tx:
        made = begun(tx, 2)
        routings.settle(tx, made, [ONE], NOW)
        boot_volumes.settle(tx, made, [ONE], NOW)
        boot_volumes.learn(tx, ONE, [ShownVolume(DISK, 2)], NOW, is_last=True)
        free = replace(made, top_id=OTHER, bottom_id=OTHER, resource_type=VOLUME, number=1)
        routing_rows.add(tx, free)
        assert routing_rows.open_ones(tx, [made.pod_id], 10) == []
        routings.lose(tx, routings.place_of(tx, ONE, SERVER), LATER)
        assert [each.top_id for each in routing_rows.open_ones(tx, [made.pod_id], 10)] == [DISK]
        boot_volumes.attached(tx, OTHER, TWO, LATER)
        assert routings.place_of(tx, OTHER, VOLUME).server_uuid == TWO


def test_nothing_is_learned_of_servers_without_open_routings(store: Store) -> None:
    with store.write() as tx:
        made = begun(tx)
        routings.settle(tx, made, [ONE], NOW)
        boot_volumes.learn(tx, ONE, [ShownVolume(DISK, 3)], LATER, is_last=True)
        assert used(tx) == (0, 0)
        boot_volumes.expect(tx, routings.place_of(tx, ONE, SERVER), LATER)
        assert used(tx) == (0, 0)
        boot_volumes.learn(tx, ONE, [ShownVolume(DISK, 3)], LATER, is_last=True)
        assert used(tx) == (1, 3)
