"""Bindings of projects to pods, compared with rules for one pod at a time and a plain history."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.domain.pods import PodBinding, PodHealth, PodRequest
from innkeeper.store.backends import catalogue
from innkeeper.store.queries.pods import pods
from innkeeper.store.tables.pods import pod_bindings
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.pods import audit, bindings, planning
from innkeeper.systems.pods.bindings import BindingSearch, NoPod
from tests.support.clouds import Numbers
from tests.support.databases import sqlite_copy
from tests.support.plain_pods import PlainPods
from tests.support.pod_rows import CAD, POLICY, add_pod, measure
from tests.support.stores import NOW

PROJECTS, ZONES = ("a", "a", "b"), ("az1", "az2")
EVERY = BindingSearch()
AMOUNTS = st.sampled_from([{}, {"vcpus": 10.0}, {"vcpus": 30.0, "memory_mb": 5.0}])
PODS = st.lists(
    st.tuples(
        st.sampled_from(ZONES),
        st.sampled_from([{}, {}, {}, dict(CAD)]),
        st.sampled_from([0.0, 1.0, -2.0]),
        st.sampled_from([{}, {"vcpus": 50.0}]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=5,
)
ROW = st.integers(0, 4)
KINDS = {
    "bind": st.tuples(
        st.sampled_from(PROJECTS),
        st.sampled_from(["general", "general", "general", "resource=CAD"]),
        st.sampled_from([None, None, *ZONES]),
        AMOUNTS,
        st.sampled_from([(), (), (), (1,), (2,)]),
    ),
    "bind_to": st.tuples(st.sampled_from(PROJECTS), ROW),
    "end": st.tuples(ROW),
    "measure": st.tuples(ROW, st.sampled_from([0.0, 45.0, 50.0, 80.0, 80.0])),
    "maintain": st.tuples(ROW, st.sampled_from([True, False, False])),
    "answer": st.tuples(ROW, st.sampled_from([True, True, False])),
}
OFTEN = ["bind"] * 8 + ["measure"] * 4 + ["bind_to", "end", "maintain", "maintain", "answer"]
STEPS = st.lists(
    st.sampled_from(OFTEN).flatmap(lambda kind: st.tuples(st.just(kind), KINDS[kind])),
    min_size=6,
    max_size=24,
)


class World:
    """The store and the model, to which the same steps are applied."""

    def __init__(self, tx: Tx, wanted: list[Any]) -> None:
        self.tx = tx
        self.ids = Numbers()
        self.plain = PlainPods()
        # The clock jumps back now and then.
        self.times = itertools.cycle(NOW + timedelta(hours=each) for each in (0, 3, 1, 5, 2))
        for number, (zone, tags, weight, headroom, age) in enumerate(wanted, start=1):
            made = add_pod(
                tx,
                number,
                az_name=zone,
                tags=tags,
                weight=weight,
                headroom=headroom,
                created_at=NOW - timedelta(days=age),
            )
            self.plain.pods[made.id] = made

    def row(self, number: int) -> int:
        known = sorted(self.plain.pods)
        return known[number % len(known)]

    def do(self, kind: str, *given: Any) -> None:
        getattr(self, kind)(*given)

    def bind(self, project: str, group: str, zone: str | None, amounts: Any, refused: Any) -> None:
        zones = {each.az_name for each in self.plain.pods.values()}
        if zone not in (None, *zones):
            return
        request = PodRequest(project, group, zone, amounts, refused=frozenset(refused))
        told = bindings.explain(self.tx, POLICY, request)
        expected = self.plain.bind(request)
        try:
            made, _ = bindings.bind(self.tx, POLICY, request, ids=self.ids, now=next(self.times))
        except NoPod:
            assert expected is None
            assert told.chosen is None
            assert all(each.refused_by for each in told.verdicts)
        else:
            assert expected is not None
            assert made.pod_id == expected.id
            # A dry run says beforehand what a request will do.
            assert told.chosen is not None
            assert told.chosen.id == made.pod_id

    def bind_to(self, project: str, number: int) -> None:
        pod = self.plain.pods[self.row(number)]
        self.plain.bind_to(project, pod)
        bindings.bind_to(self.tx, project, pod, ids=self.ids, now=next(self.times))

    def end(self, number: int) -> None:
        active = bindings.every_active(self.tx)
        if active:
            binding = active[number % len(active)]
            bindings.end(self.tx, binding.uuid, now=next(self.times))
            place = [each.id for each in history(self.tx)].index(binding.id)
            self.plain.bindings[place].ended = "ended"

    def measure(self, number: int, used: float) -> None:
        pod = self.plain.pods[self.row(number)]
        measure(self.tx, pod, NOW, vcpus=used)
        self.plain.used[pod.id] = {"vcpus": used}

    def maintain(self, number: int, is_on: bool) -> None:
        pod = self.plain.pods[self.row(number)]
        pods.change(self.tx, pod.uuid, is_in_maintenance=is_on)
        self.plain.pods[pod.id] = replace(pod, is_in_maintenance=is_on)

    def answer(self, number: int, is_up: bool) -> None:
        pod = self.plain.pods[self.row(number)]
        pods.change(self.tx, pod.uuid, is_up=is_up)
        self.plain.pods[pod.id] = replace(pod, health=PodHealth(is_up=is_up))


def history(tx: Tx) -> list[PodBinding]:
    return list(bindings.page(tx, EVERY, after=0, limit=100))


def check(world: World) -> None:
    found = history(world.tx)
    assert [
        (each.project_id, each.group_name, each.az_name, each.pod_id, each.end_reason or "")
        for each in found
    ] == [
        (each.project, each.group, each.zone, each.pod, each.ended) for each in world.plain.bindings
    ]
    assert list(audit.findings(world.tx)) == []
    active = [each for each in found if each.is_active]
    places = {(each.project_id, each.group_name, each.az_name) for each in active}
    assert len(places) == len(active)


class _Undone(Exception):
    """Ends an example, and rolls its changes back."""


@pytest.fixture(scope="module")
def store() -> Any:
    with tempfile.TemporaryDirectory() as folder, sqlite_copy(Path(folder)) as url:
        backend = catalogue.of_url(url)
        made = Store(backend, backend.engines(url, readers_max=1, busy_timeout_s=5.0))
        yield made
        made.dispose()


@settings(max_examples=250)
@given(wanted=PODS, steps=STEPS)
def test_bindings_follow_the_rules_and_leave_a_sound_history(
    store: Store, wanted: list[Any], steps: list[Any]
) -> None:
    with pytest.raises(_Undone), store.write() as tx:
        world = World(tx, wanted)
        for step in steps:
            world.do(step[0], *step[1])
            check(world)
        raise _Undone


@settings(max_examples=75)
@given(wanted=PODS, steps=STEPS, chosen=ROW)
def test_a_dry_run_of_maintenance_says_what_then_happens(
    store: Store, wanted: list[Any], steps: list[Any], chosen: int
) -> None:
    with pytest.raises(_Undone), store.write() as tx:
        world = World(tx, wanted)
        for step in steps:
            world.do(step[0], *step[1])
        pod = world.plain.pods[world.row(chosen)]
        before = {each.uuid: each for each in bindings.every_active(tx)}
        found = planning.dry_run(tx, (POLICY, POLICY), {pod.uuid: {"is_in_maintenance": True}})
        assert [each.uuid for each in bindings.every_active(tx)] == list(before)
        assert found.staying + len(found.moves) == len(before)
        world.maintain(chosen, True)
        for move in found.moves:
            assert move.reason
            request = PodRequest(
                move.binding.project_id, move.binding.group_name, move.binding.az_name
            )
            target = bindings.explain(tx, POLICY, request).chosen
            assert (target and target.id) == (move.target and move.target.id)
        raise _Undone


def test_a_planted_gap_is_found(store: Store) -> None:
    with pytest.raises(_Undone), store.write() as tx:
        world = World(tx, [("az1", {}, 0.0, {}, 0), ("az1", {}, 0.0, {}, 0)])
        world.do("bind_to", "a", 0)
        world.do("bind_to", "a", 1)
        check(world)
        later = history(tx)[1]
        at = later.started_at + timedelta(seconds=1)
        tx.execute(pod_bindings.update().where(pod_bindings.c.id == later.id).values(started_at=at))
        assert [each.invariant.kind for each in audit.findings(tx)] == ["gap-between-bindings"]
        raise _Undone
