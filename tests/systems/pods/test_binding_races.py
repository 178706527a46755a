"""Several writers bind one project at the same moment, on every database, even without turns."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
import sqlalchemy as sa

from innkeeper.domain.errors import Overtaken, Unavailable
from innkeeper.domain.pods import PodRequest
from innkeeper.store.guards import Guards
from innkeeper.store.queries.pods import bindings as binding_rows
from innkeeper.store.transactions import Store
from innkeeper.systems.pods import audit, bindings
from innkeeper.systems.pods.bindings import BindingSearch
from tests.support.clouds import Numbers
from tests.support.pod_rows import POLICY, add_pod
from tests.support.stores import NOW

WRITERS = 4
ROUNDS = 5
ATTEMPTS_MAX = 20
NO_TURNS = Guards(turns=False)
IDS = Numbers()


@pytest.mark.parametrize("clash", ["number", "place"])
def test_the_database_refuses_a_second_active_binding(store: Store, clash: str) -> None:
    with store.write() as tx:
        add_pod(tx, 1)
        made, _ = bindings.bind(tx, POLICY, PodRequest("a"), ids=IDS, now=NOW)
    second = replace(made, uuid=IDS.uuid(), sequence=made.sequence + 1)
    if clash == "number":
        second = replace(second, sequence=made.sequence, az_name="az2")
    with pytest.raises(sa.exc.IntegrityError), store.write() as tx:
        binding_rows.add(tx, second)
    with store.read() as tx:
        assert bindings.every_active(tx) == [made]


def test_a_binding_is_ended_once(store: Store) -> None:
    with store.write() as tx:
        add_pod(tx, 1)
        made, _ = bindings.bind(tx, POLICY, PodRequest("a"), ids=IDS, now=NOW)
        assert binding_rows.end(tx, made.id, "ended", NOW)
        assert not binding_rows.end(tx, made.id, "moved", NOW)
        assert bindings.get(tx, made.uuid).end_reason == "ended"


def test_writers_without_turns_make_one_binding(opened: Callable[[], Store]) -> None:
    stores = [opened() for _ in range(WRITERS)]
    side_by_side = [Store(each.backend, each.engines, NO_TURNS) for each in stores]
    with stores[0].write() as tx:
        for number in range(1, WRITERS + 1):
            add_pod(tx, number)
    barrier = Barrier(WRITERS)

    def first_request(store: Store, project_id: str) -> tuple[str, int]:
        barrier.wait()
        for attempt in range(ATTEMPTS_MAX):
            try:
                with store.write() as tx:
                    request = PodRequest(project_id)
                    made, _ = bindings.bind(tx, POLICY, request, ids=IDS, now=NOW)
                return made.uuid, attempt
            except (sa.exc.IntegrityError, Overtaken, Unavailable):
                continue
        raise AssertionError("no attempt succeeded")

    with ThreadPoolExecutor(WRITERS) as threads:
        for number in range(ROUNDS):
            project = [f"project-{number}"] * WRITERS
            found = list(threads.map(first_request, side_by_side, project))
            assert len({uuid for uuid, _ in found}) == 1
    with stores[0].read() as tx:
        assert len(bindings.page(tx, BindingSearch(), after=0, limit=99)) == ROUNDS
        assert list(audit.findings(tx)) == []
