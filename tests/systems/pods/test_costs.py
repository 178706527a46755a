"""The queries of a door never read all routings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from innkeeper.domain.door import SERVER, VOLUME, DoorLimits
from innkeeper.domain.pods import PodRouting
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.pods import pod_groups, routings
from tests.support.pod_rows import add_pod
from tests.support.query_steps import steps_of
from tests.support.stores import NOW

INDEX = "USING INDEX ix_pod_routings_pod_id_resource_type_project_id"
PODS = [1, 2, 3]


def steps(store: Store, look: Callable[[Tx], Any]) -> list[str]:
    """Return the steps, on the table of routings, of the queries of a function."""
    with store.read() as tx:
        return [each for each in steps_of(tx, look) if "pod_routings" in each]


def test_lists_look_once_into_an_index_for_each_pod(store: Store) -> None:
    if store.backend.name != "sqlite":
        return
    of_all = steps(store, lambda tx: routings.pods_of(tx, None, SERVER))
    assert of_all == [f"SEARCH pod_routings {INDEX} (pod_id=? AND resource_type=?)"]
    of_one = steps(store, lambda tx: routings.pods_of(tx, "a", VOLUME))
    found = "(pod_id=? AND resource_type=? AND project_id=?)"
    assert of_one == [f"SEARCH pod_routings {INDEX} {found}"]


def test_the_look_for_unused_groups_reads_only_groups_and_their_servers(store: Store) -> None:
    if store.backend.name != "sqlite":
        return
    own, servers = steps(store, lambda tx: pod_groups.unused(tx, PODS, NOW, 1))
    assert own == f"SEARCH pod_routings {INDEX} (pod_id=? AND resource_type=?)"
    assert servers.endswith("USING INDEX ix_pod_routings_server_group_uuid (server_group_uuid=?)")


def test_the_look_for_open_routings_reads_only_those(store: Store) -> None:
    if store.backend.name != "sqlite":
        return
    names = ("bottom_id_number", "deleted_at", "changing_at")
    reads = [f"USING COVERING INDEX ix_pod_routings_{name}" for name in names]
    by_id = "SEARCH pod_routings USING INTEGER PRIMARY KEY (rowid=?)"
    looks: list[tuple[Callable[[Tx], Any], int]] = [
        (lambda tx: routings.open_ones(tx, PODS, 9), 1),
        (lambda tx: routings.open_in_each(tx, PODS, 9), 2),
    ]
    for look, times in looks:
        found = steps(store, look)
        assert all(read in step for read, step in zip(reads, found, strict=False))
        assert found[len(reads) :] == [by_id] * times


def test_volumes_that_pods_list_are_found_by_their_ids(store: Store) -> None:
    if store.backend.name != "sqlite":
        return
    (step,) = steps(store, lambda tx: routings.of_resources(tx, ["v1", "v2"], VOLUME))
    assert step.endswith("(top_id=?)")


def test_what_a_pod_has_made_is_looked_up_together(store: Store) -> None:
    if store.backend.name != "sqlite":
        return
    counts = set()
    for number in (2, 9):
        with store.write() as tx:
            pod = add_pod(tx, number)
            wanted = PodRouting(0, f"m{number}", None, pod.id, "a", SERVER, NOW, NOW, number=number)
            made = routings.begin(tx, wanted, DoorLimits(-1))
            ids = [f"{number}-{each}" for each in range(number)]
            looks = steps_of(tx, partial(_settle, made, ids))
            counts.add(sum("SEARCH" in each for each in looks))
            assert {each.top_id for each in routings.of_resources(tx, ids, SERVER)} == set(ids)
    assert len(counts) == 1


def _settle(made: PodRouting, ids: list[str], tx: Tx) -> None:
    assert routings.settle(tx, made, ids, NOW) == ids
