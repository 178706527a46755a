"""Bindings of projects to pods, on every database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from innkeeper.domain.errors import InUse, UnknownPlace
from innkeeper.domain.pods import EndReason, Pod, PodBinding, PodRequest
from innkeeper.store.queries.pods import pods
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.pods import audit, bindings
from innkeeper.systems.pods.bindings import BindingSearch, NoPod
from tests.support.clouds import Numbers
from tests.support.pod_rows import CAD, POLICY, add_pod, measure
from tests.support.stores import NOW

HOUR = timedelta(hours=1)
IDS = Numbers()


def general(project_id: str = "a", **more: object) -> PodRequest:
    return PodRequest(project_id, **more)  # type: ignore[arg-type]


def bound(tx: Tx, request: PodRequest, hours: float = 0) -> PodBinding:
    made, _ = bindings.bind(tx, POLICY, request, ids=IDS, now=NOW + hours * HOUR)
    return made


def name_of(tx: Tx, request: PodRequest, hours: float = 0) -> str:
    uuid = bound(tx, request, hours).pod_uuid
    found = pods.by_uuid(tx, uuid)
    assert found is not None
    return found.pod_name


def seven(tx: Tx) -> dict[str, Pod]:
    """Add p1 to p3 for general work, p4 to p6 for CAD, and p7 in another availability zone."""
    made = [add_pod(tx, number) for number in (1, 2, 3)]
    made += [add_pod(tx, number, tags=CAD) for number in (4, 5, 6)]
    made.append(add_pod(tx, 7, az_name="az2"))
    return {each.pod_name: each for each in made}


def test_each_group_has_a_binding_of_its_own_and_keeps_it(store: Store) -> None:
    cad = general(group="resource=CAD")
    with store.write() as tx:
        seven(tx)
        assert name_of(tx, general()) == "p1"
        assert name_of(tx, general(amounts={"volume_gb": 10})) == "p1"
        assert name_of(tx, cad) == "p4"
        assert name_of(tx, general(), 1) == "p1"
        assert name_of(tx, cad, 1) == "p4"
        active = bindings.every_active(tx)
        assert [(each.group_name, each.sequence) for each in active] == [
            ("general", 1),
            ("resource=CAD", 1),
        ]
        assert list(audit.findings(tx)) == []


def test_a_full_pod_loses_its_bindings_and_may_get_them_back(store: Store) -> None:
    with store.write() as tx:
        made = seven(tx)
        assert name_of(tx, general()) == "p1"
        measure(tx, made["p1"], NOW, vcpus=80)
        assert name_of(tx, general(amounts={"volume_gb": 1}), 1) == "p2"
        measure(tx, made["p1"], NOW + HOUR, vcpus=10)
        assert name_of(tx, general(), 2) == "p2"
        measure(tx, made["p2"], NOW + HOUR, memory_mb=95)
        assert name_of(tx, general(), 3) == "p1"
        history = bindings.page(tx, BindingSearch(project_id="a"), after=0, limit=9)
        assert [each.pod_uuid for each in history] == [
            made[name].uuid for name in ("p1", "p2", "p1")
        ]
        first, second, third = history
        assert (first.ended_at, second.ended_at, third.ended_at) == (
            second.started_at,
            third.started_at,
            None,
        )
        assert {first.end_reason, second.end_reason} == {EndReason.MOVED}
        assert list(audit.findings(tx)) == []


def test_general_work_is_refused_rather_than_sent_to_special_pods(store: Store) -> None:
    with store.write() as tx:
        made = seven(tx)
        for name in ("p1", "p2", "p3"):
            measure(tx, made[name], vcpus=90)
        with pytest.raises(NoPod) as refusal:
            bound(tx, general(az_name="az1"))
        told = refusal.value.message_for_administrators
        assert "p1: vcpus: 90 used and 0 wanted of 80" in told
        assert "p4: a pod for resource=CAD, not general" in told
        assert bindings.every_active(tx) == []


def test_an_availability_zone_is_used_and_an_unknown_one_is_named(store: Store) -> None:
    with store.write() as tx:
        made = seven(tx)
        assert name_of(tx, general(az_name="az2")) == "p7"
        assert name_of(tx, general(az_name="az1")) == "p1"
        # If the request names no zone, the oldest chain of bindings counts.
        assert name_of(tx, general()) == "p7"
        with pytest.raises(UnknownPlace, match="az9"):
            bound(tx, general(az_name="az9"))
        measure(tx, made["p7"], vcpus=99)
        with pytest.raises(NoPod) as refusal:
            bound(tx, general(az_name="az2"))
        assert "p7: vcpus: 99 used" in refusal.value.message_for_administrators
        assert name_of(tx, general()) == "p1"
        assert list(audit.findings(tx)) == []


def test_a_move_within_a_zone_keeps_the_home_of_the_project(store: Store) -> None:
    with store.write() as tx:
        made = seven(tx)
        bound(tx, general(az_name="az1"))
        bound(tx, general(az_name="az2"))
        bindings.bind_to(tx, "a", made["p2"], ids=IDS, now=NOW)
        assert name_of(tx, general()) == "p2"


def test_maintenance_moves_bindings_and_its_end_does_not(store: Store) -> None:
    with store.write() as tx:
        made = seven(tx)
        assert name_of(tx, general()) == "p1"
        pods.change(tx, made["p1"].uuid, is_in_maintenance=True)
        assert name_of(tx, general(), 1) == "p2"
        assert name_of(tx, general("new"), 1) == "p2"
        pods.change(tx, made["p1"].uuid, is_in_maintenance=False)
        assert name_of(tx, general(), 2) == "p2"
        assert name_of(tx, general("newer"), 2) == "p1"


def test_a_pod_that_is_down_keeps_its_bindings_and_gets_no_new_ones(store: Store) -> None:
    with store.write() as tx:
        made = seven(tx)
        assert name_of(tx, general()) == "p1"
        pods.change(tx, made["p1"].uuid, is_up=False)
        assert name_of(tx, general()) == "p1"
        assert name_of(tx, general("new")) == "p2"


def test_a_pod_that_refused_a_request_is_not_asked_again(store: Store) -> None:
    with store.write() as tx:
        made = seven(tx)
        assert name_of(tx, general()) == "p1"
        again = general(refused=frozenset({made["p1"].id}))
        assert bindings.choose(tx, POLICY, again).pod.pod_name == "p2"
        assert name_of(tx, general()) == "p1"


def test_an_administrator_binds_moves_and_ends(store: Store) -> None:
    with store.write() as tx:
        made = seven(tx)
        first, is_new = bindings.bind_to(tx, "a", made["p3"], ids=IDS, now=NOW)
        assert is_new
        assert bindings.bind_to(tx, "a", made["p3"], ids=IDS, now=NOW) == (first, False)
        assert name_of(tx, general()) == "p3"
        bindings.bind_to(tx, "a", made["p2"], ids=IDS, now=NOW + HOUR)
        assert bindings.get(tx, first.uuid).end_reason == EndReason.REPLACED
        (active,) = bindings.every_active(tx)
        assert bindings.end(tx, active.uuid, now=NOW + 2 * HOUR).ended_at == NOW + 2 * HOUR
        with pytest.raises(InUse):
            bindings.end(tx, active.uuid, now=NOW + 3 * HOUR)
        assert name_of(tx, general(), 4) == "p1"
        assert list(audit.findings(tx)) == []


def test_a_clock_that_goes_back_leaves_no_overlap(store: Store) -> None:
    with store.write() as tx:
        made = seven(tx)
        bound(tx, general(), hours=5)
        bindings.bind_to(tx, "a", made["p2"], ids=IDS, now=NOW)
        bindings.bind_to(tx, "a", made["p1"], ids=IDS, now=NOW - HOUR)
        assert list(audit.findings(tx)) == []
        history = bindings.page(tx, BindingSearch(project_id="a"), after=0, limit=9)
        assert {each.started_at for each in history} == {NOW + 5 * HOUR}


def test_extra_specs_are_tags_if_a_pod_or_the_settings_have_the_key(store: Store) -> None:
    specs = {"resource": "CAD", "ssd": "yes", "hw:cpu_policy": "dedicated"}
    with store.write() as tx:
        assert bindings.group_of_specs(tx, specs, ("resource",)) == "resource=CAD"
        add_pod(tx, 1, tags={"ssd": "no"})
        assert bindings.group_of_specs(tx, specs, ("resource",)) == "resource=CAD&ssd=yes"
        assert bindings.group_of_specs(tx, {"hw:cpu_policy": "x"}, ("resource",)) == "general"
