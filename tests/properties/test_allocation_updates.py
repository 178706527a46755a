"""Updates written together have the same result as the same updates written one by one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import ConsumerUuid
from innkeeper.store.queries.placement import allocations, capacity
from innkeeper.store.transactions import Store, step
from innkeeper.systems.placement import providers
from innkeeper.systems.placement.allocations import (
    AllocationUpdate,
    AllocationUpdates,
    write,
    write_together,
)
from tests.properties.test_claims import CLASSES, NOW, PROVIDERS, TOTAL, template
from tests.support.change_feed import changes_since
from tests.support.databases import open_store

CONSUMERS = tuple(f"10000000-0000-4000-8000-00000000000{n}" for n in range(4))
SECOND = timedelta(seconds=1)


def mostly(usual: st.SearchStrategy[Any], unusual: st.SearchStrategy[Any]) -> Any:
    """Draw the unusual rarely: a story in which nothing succeeds shows no later errors."""
    return st.integers(0, 9).flatmap(lambda number: unusual if number == 9 else usual)


uuids = mostly(st.sampled_from(PROVIDERS), st.sampled_from(("none", "0" * 32, "f" * 32)))
spellings = st.sampled_from((str, str.upper, lambda text: text.replace("-", "")))
names = mostly(st.sampled_from(CLASSES), st.just("CUSTOM_UNKNOWN"))
amounts = st.dictionaries(names, st.integers(1, TOTAL // 2 + 1), min_size=1, max_size=2)
spelled = st.builds(lambda spell, uuid: spell(uuid), spellings, uuids)
updates = st.builds(
    AllocationUpdate,
    consumer=st.builds(
        lambda spell, uuid: spell(uuid),
        spellings,
        mostly(st.sampled_from(CONSUMERS), st.just("nobody")),
    ),
    resources=st.dictionaries(spelled, amounts, max_size=2),
    seen=st.sampled_from((None, None, None, 1, 2)),
    asks_no_generation=st.booleans(),
    project_id=st.sampled_from(("one", "two", None)),
    user_id=st.just("user"),
    consumer_type=mostly(st.sampled_from(("INSTANCE", None)), st.just("no type")),
)
asked = st.lists(st.lists(updates, min_size=1, max_size=3), min_size=1, max_size=8)


class State(NamedTuple):
    """All that clients, claims and followers of the change feed can see."""

    held: list[Any]
    consumers: Any
    generations: list[int]
    newest: dict[int, int]


def state(store: Store) -> State:
    """The present state; allocations by consumer, because the order of rows differs."""
    with store.read() as tx:
        ids = [providers.get(tx, uuid).id for uuid in PROVIDERS]
        rows = [row for pid in ids for row in allocations.of_provider(tx, pid)]
        views = capacity.views(tx, ids)
        return State(
            sorted((row.consumer_uuid, row.provider_id, row.class_id, row.used) for row in rows),
            allocations.consumers_by_uuid(tx, [ConsumerUuid(each) for each in CONSUMERS]),
            [views[pid].generation for pid in ids],
            dict(changes_since(tx)),
        )


def one_by_one(store: Store, batch: Sequence[AllocationUpdates]) -> list[Refusal | None]:
    """Write each update as a step of its own."""
    outcomes: list[Refusal | None] = []
    for each in batch:
        with store.write() as tx:
            try:
                with step(tx):
                    write(tx, each.all, each.now)
                outcomes.append(None)
            except Refusal as refusal:
                outcomes.append(refusal)
    return outcomes


def together(store: Store, batch: Sequence[AllocationUpdates]) -> list[Refusal | None]:
    """Write all updates at once."""
    with store.write() as tx:
        return list(write_together(tx, batch))


def told(outcomes: Sequence[Refusal | None]) -> list[Any]:
    """What the clients are told."""
    return [each and (type(each), each.message, each.code) for each in outcomes]


def update(number: int, vcpus: int, consumer_type: str = "INSTANCE") -> list[AllocationUpdate]:
    """What one client asks for: processors of the first provider, or nothing."""
    resources = {PROVIDERS[0]: {"VCPU": vcpus}} if vcpus else {}
    return [
        AllocationUpdate(CONSUMERS[number], resources, None, False, "one", "user", consumer_type)
    ]


# Hypothesis shrinks a failure before it shows it, which takes longer than finding it.
@pytest.mark.timeout(600)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches=st.lists(asked, min_size=1, max_size=3))
# While an update waits for another one of the same consumer, no later update overtakes it.
@example(batches=[[update(0, 0, "no type"), update(0, 4), update(1, 3)]])
def test_together_is_as_one_by_one(batches: list[list[list[AllocationUpdate]]]) -> None:
    with tempfile.TemporaryDirectory(prefix="innkeeper-updates-") as folder:
        stores = []
        for name in ("one-by-one", "together"):
            shutil.copytree(template(), Path(folder) / name)
            stores.append(open_store(Path(folder) / name))
        try:
            for number, batch in enumerate(batches):
                now_asked = [AllocationUpdates(each, NOW + number * SECOND) for each in batch]
                expected = told(one_by_one(stores[0], now_asked))
                assert told(together(stores[1], now_asked)) == expected
                assert state(stores[1]) == state(stores[0])
        finally:
            for store in stores:
                store.dispose()
