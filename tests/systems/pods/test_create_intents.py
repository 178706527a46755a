"""Creates through a door begin in one commit, and are settled with the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import pytest

from innkeeper.domain.door import VOLUME, DoorCaller, DoorRequest
from innkeeper.domain.errors import Invalid, VolumeQuotaExceeded
from innkeeper.domain.pods import VOLUME_GB, PodRouting
from innkeeper.engine.lateness import Lateness
from innkeeper.engine.pods import plans
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.create_intents import (
    CreateIntent,
    CreateIntents,
    MadeInPod,
    record_together,
)
from innkeeper.settings import load
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.pods import routings
from tests.support.clouds import Numbers
from tests.support.pod_rows import POLICY, add_pod
from tests.support.stores import NOW

T = TypeVar("T")
SETTINGS = load(None, environ={}, overrides={"data_dir": "/unused", "quota_volumes": 2})
MADE = "c0000000-0000-4000-8000-000000000001"


@dataclass
class CountingEngine:
    """An engine that only writes, and counts its commits."""

    store: Store
    commits: int = 0

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in a transaction."""
        with self.store.write() as tx:
            answer = work(tx)
        self.commits += 1
        return answer


def volume(**fields: Any) -> DoorRequest:
    """Return the request for a volume."""
    body = {"volume": {"size": 1, **fields}}
    caller = DoorCaller("acme", "alice", is_admin=False)
    return DoorRequest(VOLUME, "POST", "/volumes", body, {}, "http://door.example", caller)


def test_a_create_is_planned_counted_and_recorded_in_one_commit(store: Store) -> None:
    engine = CountingEngine(store)
    clouds = PodClouds(
        cast("Any", engine),
        cast("Any", None),
        cast("Any", None),
        SETTINGS.podding,
        POLICY,
        lambda: NOW,
        Numbers(),
        Lateness(SETTINGS.podding.pod_poll_interval_s),
    )
    with store.write() as tx:
        first, second = (add_pod(tx, number) for number in (1, 2))

    def begin(request: DoorRequest) -> CreateIntent:
        return asyncio.run(CreateIntents(clouds, SETTINGS).begin(request, None, [first]))

    begun = begin(volume())
    assert engine.commits == 1
    assert begun.pod.id == second.id
    assert begun.routing.group_name == "general"
    with store.write() as tx:
        assert routings.get(tx, begun.routing.id) == begun.routing
        made = MadeInPod(begun.routing, [MADE], NOW)
        assert record_together(tx, [made, made]) == [[MADE], [MADE]]
        assert routings.place_of(tx, MADE, VOLUME).pod_id == second.id
    with pytest.raises(Invalid):
        begin(volume(source_volid=begun.routing.top_id))
    assert begin(volume(source_volid=MADE)).routing.group_name is None
    with pytest.raises(VolumeQuotaExceeded):
        begin(volume())
    assert engine.commits == 2


@pytest.mark.parametrize(("asked", "expected"), [(None, 7), (9, 9)])
def test_a_copy_of_a_volume_counts_with_the_size_of_the_volume(
    store: Store, asked: int | None, expected: int
) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        source = PodRouting(0, MADE, MADE, pod.id, "acme", VOLUME, NOW, NOW, number=1, size_gb=7)
        routings.create(tx, source)
        plan = plans.plan(tx, SETTINGS, volume(size=asked, source_volid=MADE))
        assert (plan.one.size_gb, plan.asked.amounts) == (expected, {VOLUME_GB: expected})
        assert plan.must == pod.id
