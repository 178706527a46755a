"""Whatever happens to volumes and servers, claims equal volumes, and no pool is overfull."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from innkeeper.domain.compute import Booted
from innkeeper.domain.errors import Refusal
from innkeeper.domain.volumes import BlockDevice, Volume
from innkeeper.store.tables import placement, volumes
from tests.support.clouds import cloud_in, reported
from tests.support.pools import RACK, add_pool, join
from tests.support.volume_clouds import LATER, VolumeCloud

DISK_GB = 30
places = st.integers(0, 20)


class Play(RuleBasedStateMachine):
    """Two hosts with disks, one of which also uses a shared pool."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        hosts = [reported(name, disk_gb=DISK_GB) for name in ("h1", "h2")]
        self.it = VolumeCloud(cloud_in(Path(self._folder.name), *hosts))
        host = self.it.cloud.host("h2")
        self.it.cloud.write(lambda tx: join(tx, host.provider_uuid, RACK))
        self.it.cloud.write(add_pool)
        self.servers: list[str] = []

    def teardown(self) -> None:
        self.it.cloud.close()
        self._folder.cleanup()

    def _all(self) -> list[Volume]:
        query = sa.select(volumes.volumes.c.uuid).order_by(volumes.volumes.c.id)
        uuids = self.it.cloud.read(lambda tx: list(tx.execute(query).scalars()))
        return [self.it.volume(uuid) for uuid in uuids]

    def _with(self, place: int, act: Callable[[Volume], object]) -> None:
        """Do something with a random volume. A refusal must change nothing."""
        found = self._all()
        if not found:
            return
        before = [(each.uuid, each.status, self.it.held(each.uuid)) for each in found]
        try:
            act(found[place % len(found)])
        except Refusal:
            after = [(e.uuid, e.status, self.it.held(e.uuid)) for e in self._all()]
            assert after == before

    @rule(size_gb=st.integers(1, 70))
    def create(self, size_gb: int) -> None:
        self.it.create(size_gb)

    @rule(place=places, size_gb=st.integers(1, 110))
    def extend(self, place: int, size_gb: int) -> None:
        self._with(place, lambda volume: self.it.extend(volume.uuid, size_gb))

    @rule(place=places, is_forced=st.booleans())
    def delete(self, place: int, is_forced: bool) -> None:
        self._with(place, lambda volume: self.it.delete(volume.uuid, is_forced=is_forced))

    @rule(place=places, server=places, deletes=st.booleans())
    def attach(self, place: int, server: int, deletes: bool) -> None:
        if self.servers:
            uuid = self.servers[server % len(self.servers)]
            self._with(
                place, lambda volume: self.it.attach(uuid, volume.uuid, deletes_volume=deletes)
            )

    @rule(place=places, server=places)
    def detach(self, place: int, server: int) -> None:
        if self.servers:
            uuid = self.servers[server % len(self.servers)]
            self._with(place, lambda volume: self.it.detach(uuid, volume.uuid))

    @rule(size_gb=st.integers(1, 70), has_volume=st.booleans(), deletes=st.booleans())
    def boot(self, size_gb: int, has_volume: bool, deletes: bool) -> None:
        cloud = self.it.cloud
        if not has_volume:
            (booted,) = cloud.boot(cloud.request())
            assert isinstance(booted, Booted)
            self.servers.append(booted.server_ids[0])
            return
        blank = BlockDevice("blank", size_gb=size_gb, deletes_volume=deletes)
        try:
            self.servers.append(self.it.boot(blank))
        except Refusal:
            return

    @rule(place=places)
    def delete_server(self, place: int) -> None:
        if self.servers:
            self.it.delete_server(self.servers.pop(place % len(self.servers)))

    @rule(place=places, is_ok=st.sampled_from([True, True, True, False]), is_repeated=st.booleans())
    def report(self, place: int, is_ok: bool, is_repeated: bool) -> None:
        """The agent reports a result, perhaps twice, and in any order."""
        if found := self.it.orders():
            order = found[place % len(found)]
            assert self.it.settle(order, is_ok=is_ok)
            if is_repeated:
                assert not self.it.settle(order, is_ok=not is_ok)

    @rule()
    def time_out(self) -> None:
        self.it.sweep(LATER)

    @invariant()
    def claims_equal_volumes(self) -> None:
        for each in self._all():
            expected = 0 if each.provider_id is None else each.held_gb
            assert self.it.held(each.uuid) == expected

    @invariant()
    def no_pool_is_overfull(self) -> None:
        has, holds = placement.inventories, placement.allocations
        used = sa.func.coalesce(sa.func.sum(holds.c.used), 0)
        query = (
            sa.select(has.c.total, used)
            .outerjoin(
                holds,
                (holds.c.resource_provider_id == has.c.resource_provider_id)
                & (holds.c.resource_class_id == has.c.resource_class_id),
            )
            .group_by(has.c.id, has.c.total)
        )
        rows = self.it.cloud.read(lambda tx: tx.execute(query).all())
        assert all(taken <= total for total, taken in rows)

    @invariant()
    def all_is_sound(self) -> None:
        self.it.cloud.reread()
        self.it.cloud.judge()


Play.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestVolumes = Play.TestCase
