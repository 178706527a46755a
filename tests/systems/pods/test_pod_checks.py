"""Compares a pod's lists with the routings, and repairs the differences."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from innkeeper.domain.door import SERVER, TAKES, VOLUME, DoorAmounts, PodResource
from innkeeper.domain.pods import Pod, PodRequest, PodRouting
from innkeeper.engine.pods import reconciling
from innkeeper.engine.pods.comparing import PodComparison
from innkeeper.store.queries.pods import routings
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.flavors import images
from innkeeper.systems.pods import bindings, checks, contents, pods
from innkeeper.systems.pods import routings as door_routings
from innkeeper.systems.pods.checks import PodDifference, PodFault
from innkeeper.systems.volumes import types
from tests.support.clouds import Numbers, image
from tests.support.pod_rows import POLICY, add_pod
from tests.support.stores import NOW

EARLIER, LATER = NOW - timedelta(hours=1), NOW + timedelta(seconds=1)
UUID, MARK = "a0000000-0000-4000-8000-000000000001", "a0000000-0000-4000-8000-000000000009"
AMOUNTS = DoorAmounts(2, 512)


def routed(tx: Tx, pod: Pod, **more: Any) -> PodRouting:
    """Add a routing of a server."""
    made = PodRouting(
        0, UUID, UUID, pod.id, "a", SERVER, EARLIER, EARLIER, number=1, vcpus=2, memory_mb=512
    )
    made = replace(made, **more)
    routings.add(tx, made)
    return made


def told(**more: Any) -> dict[str, PodResource]:
    """Return a pod's description of one server."""
    made = PodResource(SERVER, UUID, "a", MARK, AMOUNTS)
    made = replace(made, **more)
    return {made.uuid: made}


def differences(tx: Tx, pod: Pod, there: dict[str, PodResource]) -> list[PodDifference]:
    return checks.compare(tx, pod, SERVER, there, NOW)


def only(tx: Tx, pod: Pod, there: dict[str, PodResource], fault: PodFault) -> PodDifference:
    (found,) = differences(tx, pod, there)
    assert found.fault is fault
    return found


def test_a_routing_that_its_pod_confirms_is_no_difference(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        routed(tx, pod)
        assert differences(tx, pod, told()) == []
        assert checks.compare(tx, pod, VOLUME, {}, NOW) == []
        assert checks.count(tx, pod) == 1


def test_a_lost_resource_is_forgotten_unless_its_routing_changed(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        routed(tx, pod)
        found = only(tx, pod, {}, PodFault.LOST)
        assert UUID in found.text
        (row,) = routings.of_pod(tx, pod.id, SERVER)
        routings.change(tx, row.id, {"project_id": "b"})
        assert checks.repair(tx, found, NOW) is None
        again = only(tx, pod, {}, PodFault.LOST)
        assert checks.repair(tx, again, NOW) == f"server {UUID} is forgotten"
        assert routings.of_pod(tx, pod.id, SERVER) == []
        assert checks.repair(tx, again, NOW) is None


def test_a_resource_with_a_mark_is_adopted_once_if_its_project_is_known(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        found = only(tx, pod, told(), PodFault.UNKNOWN)
        assert checks.repair(tx, found, NOW) is None, "nobody knows project a"
        bindings.bind(tx, POLICY, PodRequest("a"), ids=Numbers(), now=NOW)
        assert checks.repair(tx, found, NOW) is not None
        (row,) = routings.of_pod(tx, pod.id, SERVER)
        assert (row.top_id, row.bottom_id, row.project_id, row.number) == (UUID, UUID, "a", 1)
        assert (row.vcpus, row.memory_mb) == (2, 512)
        assert checks.repair(tx, found, NOW) is None
        assert differences(tx, pod, told()) == []


def test_what_the_door_did_not_make_or_is_making_is_left_alone(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        bindings.bind(tx, POLICY, PodRequest("a"), ids=Numbers(), now=NOW)
        assert differences(tx, pod, told(mark=None)) == []
        found = only(tx, pod, told(), PodFault.UNKNOWN)
        routed(tx, pod, top_id=MARK, bottom_id=None)
        assert differences(tx, pod, told()) == []
        assert checks.repair(tx, found, NOW) is None


def test_a_resource_that_another_pod_has_is_not_adopted(store: Store) -> None:
    with store.write() as tx:
        first, second = add_pod(tx, 1), add_pod(tx, 2)
        routed(tx, first)
        found = only(tx, second, told(), PodFault.UNKNOWN)
        assert checks.repair(tx, found, NOW) is None
        checks.repair(tx, only(tx, first, {}, PodFault.LOST), NOW)
        assert checks.repair(tx, found, NOW) is None, "nothing of project a is left"
        bindings.bind(tx, POLICY, PodRequest("a"), ids=Numbers(), now=NOW)
        assert checks.repair(tx, found, NOW) is not None
        assert [each.pod_id for each in routings.of_resource(tx, UUID, SERVER)] == [second.id]


def test_a_resource_of_another_project_follows_its_pod(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        routed(tx, pod, user_id="u")
        found = only(tx, pod, told(project_id="b"), PodFault.PROJECT)
        assert checks.repair(tx, found, NOW) is None, "nobody knows project b"
        bindings.bind(tx, POLICY, PodRequest("b"), ids=Numbers(), now=NOW)
        assert checks.repair(tx, found, NOW) == f"server {UUID} is of project b"
        (row,) = routings.of_pod(tx, pod.id, SERVER)
        assert (row.project_id, row.user_id) == ("b", None)
        assert checks.repair(tx, found, NOW) is None


def test_amounts_are_corrected(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        routed(tx, pod, vcpus=8)
        found = only(tx, pod, told(), PodFault.AMOUNTS)
        assert "counts with 8 vcpus, 512 MB and 0 GB of disk, but has 2 vcpus, 512 MB" in found.text
        assert checks.repair(tx, found, NOW) is not None
        assert routings.used(tx, "a", SERVER) == (1, 2, 512, 0)
        assert checks.repair(tx, found, NOW) is None


def test_a_volume_that_another_project_takes_over_is_left_alone(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        bindings.bind(tx, POLICY, PodRequest("b"), ids=Numbers(), now=NOW)
        routed(tx, pod)
        taken = routed(tx, pod, top_id=f"{TAKES}{UUID}", bottom_id=None, project_id="b")
        assert differences(tx, pod, told(project_id="b")) == []
        (row,) = routings.of_resource(tx, taken.top_id, SERVER)
        routings.remove(tx, row.id)
        only(tx, pod, told(project_id="b"), PodFault.PROJECT)


def test_a_transfer_that_arrives_late_gives_the_volume_to_its_new_project(store: Store) -> None:
    of_volume: dict[str, Any] = {"resource_type": VOLUME, "vcpus": None, "memory_mb": None}
    with store.write() as tx:
        pod = add_pod(tx, 1)
        routed(tx, pod, **of_volume, size_gb=1, user_id="u")
        volume = PodResource(VOLUME, UUID, "b", MARK, DoorAmounts(size_gb=1))
        there = {UUID: volume}
        (found,) = checks.compare(tx, pod, VOLUME, there, NOW)
        assert reconciling.repairable(PodComparison([found], 1)) == []
        taking = {"top_id": f"{TAKES}{UUID}", "bottom_id": None, "project_id": "b", "user_id": "v"}
        for _ in range(2):
            # A second request leaves only one note.
            routed(tx, pod, **of_volume, size_gb=1, **taking)
            assert checks.compare(tx, pod, VOLUME, there, NOW) == []
            (begun,) = routings.of_resource(tx, f"{TAKES}{UUID}", VOLUME)
            door_routings.lapse(tx, begun, NOW)
        assert routings.used(tx, "b", VOLUME) == (0, 0, 0, 0)
        assert routings.open_ones(tx, [pod.id], 10) == []
        assert contents.of_pod(tx, pod.uuid, after="", limit=10).total.begun == 0
        (other,) = checks.compare(tx, pod, VOLUME, {UUID: replace(volume, project_id="c")}, NOW)
        assert reconciling.repairable(PodComparison([other], 1)) == []
        (found,) = checks.compare(tx, pod, VOLUME, there, NOW)
        assert reconciling.repairable(PodComparison([found], 1)) == [found]
        assert checks.repair(tx, found, NOW) == f"volume {UUID} is of project b"
        (row,) = routings.of_pod(tx, pod.id, VOLUME)
        assert (row.project_id, row.user_id) == ("b", "v")


def test_notes_about_late_transfers_end_and_keep_no_pod(store: Store) -> None:
    with store.write() as tx:
        pod = add_pod(tx, 1)
        routed(tx, pod, resource_type=VOLUME, top_id=f"{TAKES}{UUID}", bottom_id=None)
        (begun,) = routings.of_resource(tx, f"{TAKES}{UUID}", VOLUME)
        door_routings.lapse(tx, begun, NOW)
        door_routings.drop_notes(tx, pod.id, NOW)
        assert len(routings.of_pod(tx, pod.id, VOLUME)) == 1
        pods.delete(tx, pod.uuid)
        assert routings.of_pod(tx, pod.id, VOLUME) == []


def test_a_volume_with_a_server_of_the_door_is_adopted_without_a_mark(store: Store) -> None:
    server = "a0000000-0000-4000-8000-000000000005"
    with store.write() as tx:
        pod = add_pod(tx, 1)
        volume = PodResource(VOLUME, UUID, "a", None, DoorAmounts(size_gb=1), (server,))
        assert checks.compare(tx, pod, VOLUME, {UUID: volume}, NOW) == []
        routed(tx, pod, top_id=server, bottom_id=server)
        foreign = replace(volume, project_id="b")
        assert checks.compare(tx, pod, VOLUME, {UUID: foreign}, NOW) == []
        (found,) = checks.compare(tx, pod, VOLUME, {UUID: volume}, NOW)
        assert found.fault is PodFault.UNKNOWN
        assert checks.repair(tx, found, NOW) is not None
        (row,) = routings.of_pod(tx, pod.id, VOLUME)
        assert (row.size_gb, row.server_uuid) == (1, server)


def test_an_adopted_volume_has_the_type_and_the_image_that_the_door_knows_by_name(
    store: Store,
) -> None:
    volume = PodResource(VOLUME, UUID, "a", MARK, DoorAmounts(size_gb=1))
    # Two images of project b have the same name, and project a sees no image of project b.
    owners = {"mine": "a", "theirs": "b", "same-1": "b", "same-2": "b"}
    wanted = [
        ("a", "fast", "mine", MARK, "mine"),
        ("a", "unknown", "theirs", None, None),
        ("b", None, "same", None, None),
    ]
    with store.write() as tx:
        pod, ids = add_pod(tx, 1), Numbers()
        for project in ("a", "b"):
            bindings.bind(tx, POLICY, PodRequest(project), ids=ids, now=NOW)
        types.create(tx, MARK, "fast", None, {}, is_public=True, now=NOW)
        for uuid, owner in owners.items():
            images.create(tx, image(id=uuid, name=uuid.partition("-")[0], owner=owner))
        for number, (project, kind, name, type_uuid, image_id) in enumerate(wanted):
            uuid = f"a0000000-0000-4000-8000-00000000001{number}"
            made = replace(volume, uuid=uuid, project_id=project, volume_type=kind, image_name=name)
            (found,) = checks.compare(tx, pod, VOLUME, {uuid: made}, NOW)
            assert checks.repair(tx, found, NOW) is not None
            (row,) = routings.of_resource(tx, uuid, VOLUME)
            assert (row.type_uuid, row.image_id, row.user_id) == (type_uuid, image_id, None)
            routings.remove(tx, row.id)


NOT_FINAL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "resizing": ({"changing_at": EARLIER}, {}),
    "just written": ({"updated_at": LATER}, {}),
    "not told": ({}, {"amounts": None}),
    "made by hand": ({"number": None}, {}),
}


@pytest.mark.parametrize("case", sorted(NOT_FINAL))
def test_amounts_that_are_not_final_are_no_difference(store: Store, case: str) -> None:
    routing, resource = NOT_FINAL[case]
    with store.write() as tx:
        pod = add_pod(tx, 1)
        routed(tx, pod, vcpus=8, **routing)
        assert differences(tx, pod, told(**resource)) == []
