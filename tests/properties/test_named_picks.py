"""One decision for many named hosts has the result of one decision for each of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.depletion import undo
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.scheduling.schedulers.catalogue import AllAtOnce
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import (
    Pool,
    Sketch,
    add_pools,
    asking,
    host,
    picture,
    pipeline_of,
    table_of,
)

NAMES = ("a", "b", "c", "d", "gone")
SPREAD = pipeline_of(FreeMemoryWeigher=1.0)
SHARED = frozenset({"rack"})

hosts = st.tuples(
    *(
        st.builds(
            host,
            st.just(name),
            vcpus=st.integers(0, 4),
            disk_gb=st.sampled_from((0, 500)),
            zone=st.sampled_from(("nova", "other")),
            is_open=st.booleans(),
            aggregates=st.just(SHARED),
        )
        for name in NAMES[:-1]
    )
)
named = st.lists(st.sampled_from(NAMES), min_size=1, max_size=12)


def one_by_one(
    pipeline: Pipeline, table: HostTable, spec: RequestSpec, names: list[str]
) -> list[tuple[int, str, float]]:
    """Plan one server after the other, each for its own host."""
    scheduler = AllAtOnce(pipeline, Choice())
    found = []
    for place, name in enumerate(names):
        alone = replace(spec, count=1, turn=place, forced_host=name)
        entries = scheduler.plan(table, alone).entries
        found += [(place, each.host, each.weight) for each in entries]
    return found


@given(hosts, named, st.sampled_from((None, "nova")), st.integers(0, 40))
def test_named_hosts_are_checked_as_if_they_were_asked_for_one_by_one(
    sketches: tuple[Sketch, ...], names: list[str], zone: str | None, pooled_gb: int
) -> None:
    tables = [table_of(*sketches) for _ in range(2)]
    for each in tables:
        add_pools(each, Pool({"DISK_GB": pooled_gb}, SHARED))
    spec = asking(availability_zone=zone, count=len(names))
    expected = one_by_one(SPREAD, tables[0], spec, names)
    before = picture(tables[1])
    made = AllAtOnce(SPREAD, Choice()).plan_named(tables[1], spec, names)
    entries = made.plan.entries
    found = [
        (place, each.host, each.weight) for place, each in zip(made.places, entries, strict=True)
    ]
    assert found == expected
    assert picture(tables[1]) == picture(tables[0])
    undo(tables[1], spec, made.plan)
    assert picture(tables[1]) == before
