"""What is still in a pod, by project."""

from __future__ import annotations

from typing import Any

import pytest

from innkeeper.domain.door import SERVER, VOLUME
from innkeeper.domain.errors import NotFound
from innkeeper.domain.pods import PodContents, PodRequest, PodRouting
from innkeeper.store.queries.pods import routings
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.pods import bindings, contents
from innkeeper.systems.pods.contents import DrainedPod
from tests.support.clouds import Numbers
from tests.support.pod_rows import POLICY, add_pod
from tests.support.stores import NOW


def routed(tx: Tx, pod_id: int, top_id: str, project_id: str, **more: Any) -> None:
    """Add a routing of a server that its pod has confirmed, with these fields."""
    usual: dict[str, Any] = {"bottom_id": top_id, "resource_type": SERVER, "number": 1}
    fields = {**usual, **more}
    row = PodRouting(0, top_id, fields.pop("bottom_id"), pod_id, project_id, **_times(fields))
    routings.add(tx, row)


def _times(fields: dict[str, Any]) -> dict[str, Any]:
    return {"created_at": NOW, "updated_at": NOW, **fields}


def drained(tx: Tx, uuid: str, after: str = "", limit: int = 10) -> DrainedPod:
    return contents.of_pod(tx, uuid, after=after, limit=limit)


def test_an_empty_pod_has_nothing(store: Store) -> None:
    with store.write() as tx:
        found = drained(tx, add_pod(tx, 1).uuid)
        assert (found.projects, found.project_count, found.binding_count) == ([], 0, 0)
        assert found.total.is_empty
        with pytest.raises(NotFound):
            drained(tx, "nothing")


def test_amounts_are_summed_by_project_and_pages_go_on(store: Store) -> None:
    with store.write() as tx:
        pod, other = add_pod(tx, 1), add_pod(tx, 2)
        bindings.bind(tx, POLICY, PodRequest("b"), ids=Numbers(), now=NOW)
        routed(tx, pod.id, "1", "a", vcpus=2, memory_mb=512)
        routed(tx, pod.id, "2", "a", vcpus=3, memory_mb=512, deleted_at=NOW)
        routed(tx, pod.id, "3", "a", resource_type=VOLUME, size_gb=7)
        routed(tx, pod.id, "4", "b", bottom_id=None, number=3, vcpus=1, memory_mb=256)
        routed(tx, other.id, "5", "c", vcpus=9)
        found = drained(tx, pod.uuid)
        assert found.projects == [
            PodContents("a", 2, 1, 1, 0, 5, 1024, 7),
            PodContents("b", 0, 0, 0, 3, 3, 768, 0),
        ]
        assert (set(found.bound), found.project_count, found.binding_count) == ({"b"}, 2, 1)
        assert found.total == PodContents("", 2, 1, 1, 3, 8, 1792, 7)
        assert not found.total.is_empty
        assert [each.project_id for each in drained(tx, pod.uuid, limit=1).projects] == ["a"]
        assert [each.project_id for each in drained(tx, pod.uuid, after="a").projects] == ["b"]


def test_a_create_whose_outcome_is_not_known_keeps_a_pod_from_being_empty(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        routed(tx, pod.id, "1", "a", bottom_id=None)
        assert not drained(tx, pod.uuid).total.is_empty
