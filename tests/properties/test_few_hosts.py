"""A decision that reads few rows has the same result as one that reads all rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import BuildPlan, Network, RequestSpec
from innkeeper.scheduling.expressions import parse
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.scheduling.reading import Reads
from innkeeper.scheduling.schedulers.catalogue import SCHEDULERS
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.scheduling.weighers.catalogue import WEIGHERS
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import GENERAL, POOLED
from tests.properties.test_drivers import CLASSES, GROUPS
from tests.support.tables import Sketch, asking, table_of

MINE, OTHER, STRANGE = "mine", "other", "strange"
PLACES = (GENERAL, POOLED, MINE, OTHER, STRANGE)
HOSTS_MAX = 8
WEIGHED = tuple((each, 1.0 + 0.1 * number) for number, each in enumerate(WEIGHERS.values()))
NARROWING = Pipeline(tuple(FILTERS.values()), WEIGHED)


class Whole:
    """A filter without the method that names the few rows to read."""

    def __init__(self, inner: Any) -> None:
        self.NAME: str = inner.NAME
        self.REASON: str = inner.REASON
        self.READS: Reads = inner.READS
        self._inner = inner

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        found: Mask | None = self._inner.mask(hosts, spec, rows)
        return found

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        return str(self._inner.missing(hosts, spec))


def looking_at_all() -> Pipeline:
    """The same filters in the same order; none of them can name few rows."""
    whole = (*NARROWING.steady_filters, *(Whole(each) for each in NARROWING.rare_filters))
    return Pipeline(whole, WEIGHED)


SPECS = st.builds(
    asking,
    vcpus=st.integers(1, 3),
    memory_mb=st.integers(0, 3),
    disk_gb=st.integers(0, 1),
    count=st.integers(1, 3),
    seed=st.integers(0, 2**63),
    refused_hosts=st.sampled_from([frozenset(), frozenset({"h1"})]),
    group=GROUPS,
    pclouds=st.sampled_from([(), (MINE,), (MINE,), (MINE, OTHER), (STRANGE,), ("gone",)]),
    pcloud_host=st.sampled_from([None, None, None, "at-h2", "at-gone"]),
    forced_host=st.sampled_from([None, None, None, "h2", "gone"]),
    same_hosts=st.sampled_from([None, None, None, frozenset({"h2", "h3"})]),
    different_hosts=st.sampled_from([frozenset(), frozenset(), frozenset({"h3"})]),
    query=st.sampled_from([None, None, parse('[">=", "$free_ram_mb", 4]')]),
    near=st.sampled_from([None, None, Network(4, 0, 0)]),
)
FREE = st.fixed_dictionaries({name: st.integers(0, 9) for name in CLASSES})
FREES = st.lists(FREE, min_size=1, max_size=HOSTS_MAX)
DEALT = st.lists(
    st.tuples(st.sampled_from(PLACES), st.booleans()), min_size=HOSTS_MAX, max_size=HOSTS_MAX
)


def fleet(frees: list[dict[str, int]]) -> HostTable:
    used = dict.fromkeys(CLASSES, 1)
    table = table_of(*(Sketch(f"h{n}", free, used) for n, free in enumerate(frees)))
    table.knows_servers = True
    for uuid in (MINE, OTHER, STRANGE):
        projects = {"somebody"} if uuid == STRANGE else {asking(1, 1, 0).project_id}
        table.dedications.set_facts(uuid, projects, taken_in=())
    return table


def deal(table: HostTable, dealt: list[tuple[int | str, bool]]) -> None:
    """Dedicate each host to nobody, to a pool, or to a pcloud; it may be open or not."""
    for index, (place, is_open) in zip(range(table.host_count), dealt, strict=False):
        code = table.dedications.code(place) if isinstance(place, str) else place
        name = f"at-{table.names[index]}" if isinstance(place, str) else ""
        table.dedicate(HostIndex(index), code, name, is_open=is_open and bool(name))


def told(made: BuildPlan) -> tuple[object, ...]:
    """Everything in a plan except its texts."""
    entries = [(e.host, e.weight, e.alternates) for e in made.entries]
    return (
        entries,
        made.seen,
        made.candidates,
        [(e.filter_name, e.removed) for e in made.removals],
    )


@pytest.mark.parametrize("driver", list(SCHEDULERS))
def test_few_rows_give_the_same_plan_as_all_rows(driver: str) -> None:
    @settings(max_examples=150, deadline=None)
    @given(FREES, DEALT, DEALT, SPECS, st.sampled_from([1, 1, 3]))
    def check(
        frees: list[dict[str, int]],
        dealt: list[tuple[int | str, bool]],
        then: list[tuple[int | str, bool]],
        spec: RequestSpec,
        subset_size: int,
    ) -> None:
        spec = replace(spec, pcloud_host=spec.pcloud_host if spec.pclouds else None)
        choice = Choice(subset_size, alternates=2 if spec.count == 1 else 0)
        few, whole = fleet(frees), fleet(frees)
        schedulers = [
            (few, SCHEDULERS[driver](NARROWING, choice)),
            (whole, SCHEDULERS[driver](looking_at_all(), choice)),
        ]
        for each in (dealt, then):
            for table in (few, whole):
                deal(table, each)
            # After the second deal, nothing cached for the first deal may be used.
            found = [told(scheduler.plan(table, spec)) for table, scheduler in schedulers]
            assert found[0] == found[1]
        gone = few.provider_ids[0]
        for table in (few, whole):
            table.remove_row(gone)
        found = [told(scheduler.plan(table, spec)) for table, scheduler in schedulers]
        assert found[0] == found[1]

    check()
