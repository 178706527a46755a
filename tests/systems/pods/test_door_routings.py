"""Routings of a door as rows, on every database: quotas, creates in doubt, and bindings."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from innkeeper.domain.door import SERVER, TAKES, VOLUME, DoorAmounts, DoorLimits
from innkeeper.domain.errors import Conflict, NotFound, QuotaExceeded, VolumeQuotaExceeded
from innkeeper.domain.grouping import ServerGroup
from innkeeper.domain.pods import VCPUS, VOLUME_GB, PodRequest, PodRouting
from innkeeper.domain.volumes import VolumeUsage
from innkeeper.store.queries.pods import measurements
from innkeeper.store.queries.pods import routings as routing_rows
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.pods import audit, bindings, pod_groups, routings, usage
from tests.support.clouds import Numbers
from tests.support.pod_rows import POLICY, add_pod, measure
from tests.support.stores import NOW

IDS = Numbers()
MARK, ONE, TWO = (f"c0000000-0000-4000-8000-{number:012d}" for number in range(3))


def begun(pod_id: int, mark: str = MARK, kind: str = SERVER, **more: int) -> PodRouting:
    """Return a routing of a create that begins."""
    plain = PodRouting(0, mark, None, pod_id, "a", kind, NOW, NOW, user_id="u")
    amounts: Any = {"number": 1, "vcpus": 2, "memory_mb": 512, "size_gb": 0, **more}
    return replace(plain, **amounts)


def test_a_create_counts_before_the_pod_is_asked_and_until_it_is_forgotten(store: Store) -> None:
    limits = DoorLimits(3, vcpus=6, memory_mb=-1)
    with store.write() as tx:
        pod = add_pod(tx, 1)
        made = routings.begin(tx, begun(pod.id, number=2), limits)
        assert routings.used(tx, "a", SERVER) == (2, 4, 1024, 0)
        with pytest.raises(NotFound):
            routings.place_of(tx, MARK, SERVER)
        with pytest.raises(QuotaExceeded, match="instances: Requested 2, but already used 2 of 3"):
            routings.begin(tx, begun(pod.id, "other", number=2), limits)
        with pytest.raises(QuotaExceeded, match="cores"):
            routings.begin(tx, begun(pod.id, "other", vcpus=3), limits)
        routings.settle(tx, made, [ONE, TWO], NOW)
        routings.settle(tx, made, [ONE, TWO], NOW)
        assert routings.used(tx, "a", SERVER) == (2, 4, 1024, 0)
        assert routings.open_ones(tx, [pod.id], 10) == []
        one = routings.place_of(tx, ONE, SERVER)
        assert (one.bottom_id, one.number) == (ONE, 1)
        routings.recount(tx, one, DoorAmounts(1, 256), NOW)
        routings.begin_delete(tx, one.id, NOW)
        assert [each.top_id for each in routings.open_ones(tx, [pod.id], 10)] == [ONE]
        routings.forget(tx, one.id)
        assert routings.used(tx, "a", SERVER) == (1, 2, 512, 0)


def test_open_routings_of_one_pod_do_not_displace_those_of_others(store: Store) -> None:
    limits = DoorLimits(-1, vcpus=-1, memory_mb=-1)
    with store.write() as tx:
        first, second = add_pod(tx, 1), add_pod(tx, 2)
        marks = ["m1", "m2", "m3"]
        for mark in marks:
            routings.begin(tx, begun(first.id, mark), limits)
        routings.begin(tx, begun(second.id, "other"), limits)
        pods = [first.id, second.id]
        assert [each.top_id for each in routings.open_in_each(tx, pods, 2)] == ["m1", "m2", "other"]
        assert [each.top_id for each in routings.open_in_each(tx, [second.id], 2)] == ["other"]


def test_volumes_have_quotas_of_their_own(store: Store) -> None:
    limits = DoorLimits(2, size_gb=10)
    with store.write() as tx:
        pod = add_pod(tx, 1)
        routings.begin(tx, begun(pod.id, kind=VOLUME, size_gb=6), limits)
        with pytest.raises(VolumeQuotaExceeded, match="Requested 5G, quota is 10G and 6G"):
            routings.begin(tx, begun(pod.id, "other", VOLUME, size_gb=5), limits)
        routings.begin(tx, begun(pod.id, "other", VOLUME, size_gb=4), limits)
        with pytest.raises(VolumeQuotaExceeded, match="Maximum number of volumes"):
            routings.begin(tx, begun(pod.id, "third", VOLUME), limits)
        assert routings.used(tx, "a", VOLUME)[0] == 2
        large = DoorLimits(-1, per_volume_gb=5)
        with pytest.raises(VolumeQuotaExceeded, match="larger than maximum allowed limit 5G"):
            routings.begin(tx, begun(pod.id, "large", VOLUME, size_gb=6), large)
        fast = replace(begun(pod.id, "fast", VOLUME, size_gb=4), type_uuid=TWO)
        limits = DoorLimits(-1, type_name="fast", type_number=1, type_size_gb=5)
        made = routings.begin(tx, fast, limits)
        with pytest.raises(VolumeQuotaExceeded, match="quota 'volumes_fast'"):
            routings.begin(tx, replace(fast, top_id="next"), limits)
        with pytest.raises(VolumeQuotaExceeded, match="allowed gigabytes_fast quota"):
            routings.grow(tx, made.id, DoorAmounts(size_gb=6), limits, NOW)
        with pytest.raises(VolumeQuotaExceeded, match="size 6G is larger"):
            routings.grow(tx, made.id, DoorAmounts(size_gb=6), large, NOW)
        assert routings.used_by_type(tx, "a") == {"": VolumeUsage(2, 10), TWO: VolumeUsage(1, 4)}
        routings.settle(tx, made, [ONE], NOW)
        one = routings.place_of(tx, ONE, VOLUME)
        other = DoorLimits(0, size_gb=0, type_name="slow", type_number=1, type_size_gb=3)
        with pytest.raises(VolumeQuotaExceeded, match="gigabytes_slow"):
            routings.retype(tx, one.id, MARK, other, NOW)
        changing = routings.retype(tx, one.id, MARK, replace(other, type_size_gb=4), NOW)
        assert TWO in routings.used_by_type(tx, "a")
        routings.recount(tx, changing, None, NOW, MARK)
        assert routings.used_by_type(tx, "a")[MARK] == VolumeUsage(1, 4)


def test_an_id_of_another_pod_is_refused(store: Store) -> None:
    limits = DoorLimits(-1)
    with store.write() as tx:
        first, second = add_pod(tx, 1), add_pod(tx, 2)
        routings.settle(tx, routings.begin(tx, begun(first.id), limits), [ONE], NOW)
        again = routings.begin(tx, begun(second.id, "other"), limits)
        assert routings.settle(tx, again, [ONE], NOW) == []
        assert routings.place_of(tx, ONE, SERVER).pod_id == first.id
        assert routings.open_ones(tx, [first.id, second.id], 10) == []


def test_a_resource_that_changes_counts_with_the_larger_amounts_until_it_is_looked_at(
    store: Store,
) -> None:
    limits = DoorLimits(-1, vcpus=8)
    later = NOW + timedelta(seconds=1)
    with store.write() as tx:
        pod = add_pod(tx, 1)
        routings.settle(tx, routings.begin(tx, begun(pod.id, vcpus=4), limits), [ONE], NOW)
        one = routings.place_of(tx, ONE, SERVER)
        with pytest.raises(QuotaExceeded, match="cores"):
            routings.grow(tx, one.id, DoorAmounts(9, 64), limits, NOW)
        first = routings.grow(tx, one.id, DoorAmounts(8, 64), limits, NOW)
        assert routings.used(tx, "a", SERVER) == (1, 8, 512, 0)
        assert routings.open_ones(tx, [pod.id], 10) == [first]
        second = routings.grow(tx, one.id, DoorAmounts(2, 64), limits, later)
        # A reading from before the second change says nothing about that change.
        routings.recount(tx, first, DoorAmounts(1, 1), later)
        assert routings.used(tx, "a", SERVER) == (1, 8, 512, 0)
        routings.recount(tx, second, DoorAmounts(2, 64), later)
        assert routings.used(tx, "a", SERVER) == (1, 2, 64, 0)
        assert routings.open_ones(tx, [pod.id], 10) == []


def test_what_was_placed_since_the_measurement_counts_as_used(store: Store) -> None:
    limits, second = DoorLimits(-1), timedelta(seconds=1)
    asked = PodRequest("a", amounts={VCPUS: 10})
    with store.write() as tx:
        first, other = add_pod(tx, 1), add_pod(tx, 2)
        old = replace(begun(first.id, vcpus=1000), created_at=NOW - second)
        routings.begin(tx, old, limits)
        # A pod that was never measured has room, whatever was placed there.
        assert bindings.choose(tx, POLICY, asked).pod == first
        for pod in (first, other):
            measure(tx, pod, vcpus=60.0, disk_gb=0.0, volume_gb=0.0)
        assert bindings.choose(tx, POLICY, asked).pod == first
        lately = replace(begun(first.id, ONE, number=2, vcpus=5), created_at=NOW + second)
        made = routings.begin(tx, lately, limits)
        assert bindings.table_of(tx).used[VCPUS].tolist() == [70.0, 60.0]
        assert bindings.choose(tx, POLICY, asked).pod == first
        routings.settle(tx, made, [ONE, TWO], NOW + second)
        assert bindings.table_of(tx).used[VCPUS].tolist() == [70.0, 60.0]
        more = replace(begun(first.id, MARK, VOLUME, vcpus=0, size_gb=9), created_at=NOW + second)
        routings.begin(tx, more, limits)
        assert bindings.table_of(tx).used[VOLUME_GB].tolist() == [9.0, 0.0]
        assert bindings.choose(tx, POLICY, replace(asked, amounts={VCPUS: 11})).pod == other
        measure(tx, first, NOW + second, vcpus=60.0)
        assert bindings.table_of(tx).used[VCPUS].tolist() == [60.0, 60.0]


def test_what_was_placed_long_ago_is_summed_up_once(store: Store) -> None:
    limits, later = DoorLimits(-1), NOW + timedelta(hours=1)
    with store.write() as tx:
        first, other = add_pod(tx, 1), add_pod(tx, 2)
        measure(tx, first, vcpus=1.0)
        for mark, at in ((ONE, NOW + timedelta(seconds=1)), (TWO, later)):
            routings.begin(tx, replace(begun(first.id, mark, vcpus=5), created_at=at), limits)
        routings.begin(tx, replace(begun(other.id, MARK, vcpus=7), created_at=later), limits)
        assert bindings.table_of(tx).used[VCPUS].tolist() == [11.0, 0.0]
        usage.count_placed(tx, later)
        (last,) = measurements.newest(tx).values()
        assert (last.placed or {})[VCPUS] == 5.0
        assert last.counted_until == later - usage.NOT_COUNTED
        assert routing_rows.placed(tx)[first.id][VCPUS] == 5.0
        for _ in range(2):
            assert bindings.table_of(tx).used[VCPUS].tolist() == [11.0, 0.0]
            usage.count_placed(tx, later + usage.NOT_COUNTED)
        assert routing_rows.placed(tx) == {}
        measure(tx, first, later, vcpus=2.0)
        assert bindings.table_of(tx).used[VCPUS].tolist() == [2.0, 0.0]


def test_a_binding_follows_the_pod_that_accepted(store: Store) -> None:
    request = PodRequest("a")
    with store.write() as tx:
        first, second = add_pod(tx, 1), add_pod(tx, 2)
        assert bindings.choose(tx, POLICY, request).pod == first
        made = bindings.follow(tx, request, first, NOW, ids=IDS, now=NOW)
        assert made is not None and made.pod_id == first.id
        assert bindings.follow(tx, request, first, NOW, ids=IDS, now=NOW) is None
        later = NOW + timedelta(seconds=1)
        refused = replace(request, refused=frozenset({first.id}))
        pod = bindings.choose(tx, POLICY, refused).pod
        moved = bindings.follow(tx, refused, pod, later, ids=IDS, now=later)
        assert moved is not None and moved.pod_id == second.id
        # An older request that ends only now does not move the binding back.
        assert bindings.follow(tx, request, first, NOW, ids=IDS, now=later) is None
        assert list(audit.findings(tx)) == []


def test_a_group_is_made_once_in_a_pod_and_keeps_its_servers_together(store: Store) -> None:
    limits, later = DoorLimits(-1, group_members=2), NOW + timedelta(seconds=60)
    with store.write() as tx:
        first, second = add_pod(tx, 1), add_pod(tx, 2)
        times = {"now": NOW, "stale": NOW - timedelta(seconds=30)}
        made, is_ours = pod_groups.begin(tx, TWO, "a", first.id, **times)
        assert is_ours and made.bottom_id is None
        assert pod_groups.begin(tx, TWO, "a", first.id, **times) == (made, False)
        times = {"now": later, "stale": NOW + timedelta(seconds=30)}
        taken, is_ours = pod_groups.begin(tx, TWO, "a", first.id, **times)
        assert is_ours and taken.updated_at != taken.created_at
        pod_groups.confirm(tx, made.id, "there", later)
        assert pod_groups.begin(tx, TWO, "a", first.id, **times)[0].bottom_id == "there"
        assert pod_groups.pod_of(tx, TWO) is None
        # The routing of a group does not count as an undecided create.
        assert routings.open_ones(tx, [first.id], 10) == []
        wanted = replace(begun(first.id), server_group_uuid=TWO)
        one = routings.begin(tx, wanted, limits)
        assert pod_groups.pod_of(tx, TWO) == first.id
        assert pod_groups.members(tx, [TWO]) == {}
        routings.settle(tx, one, [ONE], NOW)
        assert pod_groups.members(tx, [TWO]) == {TWO: [ONE]}
        with pytest.raises(Conflict, match="must be in one pod"):
            routings.begin(tx, replace(wanted, pod_id=second.id, top_id="x"), limits)
        with pytest.raises(QuotaExceeded, match="too many servers in group"):
            routings.begin(tx, replace(wanted, number=2, top_id="x"), limits)


def test_groups_that_nobody_needs_are_found(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        kept = ServerGroup(ONE, "g", "a", "u", "affinity", None, NOW)
        idle = replace(kept, uuid=TWO)
        for group in (kept, idle):
            groups.create(tx, group, -1)
        times = {"now": NOW, "stale": NOW}
        for uuid in (ONE, TWO, MARK):
            pod_groups.begin(tx, uuid, "a", pod.id, **times)
        wanted = replace(begun(pod.id, "m"), server_group_uuid=ONE)
        routings.settle(tx, routings.begin(tx, wanted, DoorLimits(-1)), ["s"], NOW)

        def unused(before: datetime) -> list[str]:
            return [each.top_id for each in pod_groups.unused(tx, [pod.id], before, 10)]

        assert unused(NOW) == [MARK]
        assert unused(NOW + timedelta(seconds=1)) == [TWO, MARK]


def test_a_volume_that_another_project_takes_over_counts_there(store: Store) -> None:
    limits = DoorLimits(1)
    with store.write() as tx:
        pod = add_pod(tx, 1)
        made = routings.begin(tx, begun(pod.id, kind=VOLUME, size_gb=3), limits)
        routings.settle(tx, made, [ONE], NOW)
        wanted = replace(begun(pod.id, TAKES + ONE, VOLUME, size_gb=3), project_id="b", user_id="v")
        taking = routings.begin(tx, wanted, limits)
        assert routings.used(tx, "b", VOLUME) == (1, 2, 512, 3)
        with pytest.raises(VolumeQuotaExceeded):
            routings.begin(tx, replace(wanted, top_id="other"), limits)
        assert routings.settle(tx, taking, [ONE], NOW) == [ONE]
        assert (routings.used(tx, "a", VOLUME)[0], routings.used(tx, "b", VOLUME)[0]) == (0, 1)
        assert routings.place_of(tx, ONE, VOLUME).user_id == "v"
        # An id of another project's resource is not taken over by a create.
        again = routings.begin(tx, begun(pod.id, kind=VOLUME), DoorLimits(-1))
        routings.settle(tx, again, [ONE], NOW)
        assert routings.place_of(tx, ONE, VOLUME).project_id == "b"


@pytest.mark.parametrize("odd", ["a\0b", "a,b", "", "\U0001f600", "x" * 300])
def test_a_pod_may_name_what_no_database_has(store: Store, odd: str) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        made = routings.begin(tx, begun(pod.id, kind=VOLUME), DoorLimits(-1))
        routings.settle(tx, made, [ONE], NOW)
        ((home, ids),) = routings.homes(tx, VOLUME, [odd, ONE])
        assert (home.pod_id, ids) == (pod.id, [ONE])
        assert [each.top_id for each in routings.of_resources(tx, [ONE, odd], VOLUME)] == [ONE]
        assert not routings.known(tx, odd, VOLUME)
        assert routings.type_named(tx, odd) is None
