"""Replays by every driver: nothing is ever oversold, and in the end all amounts are free again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling.schedulers.catalogue import SCHEDULERS
from innkeeper.scheduling.simulation.fleets import table_of
from innkeeper.scheduling.simulation.replay import Replay, ReplayOptions
from innkeeper.scheduling.simulation.workload import Workload
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.compute.boot.drivers import scheduler_of
from tests.support.tables import picture
from tests.support.workloads import forever, hosts_of, workload_of

ROWS = st.lists(
    st.tuples(
        st.integers(0, 40).map(float),
        st.integers(0, 30).map(float) | st.just(forever()),
        st.integers(0, 2),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=40,
)


class Recorded:
    """A scheduler whose plans are written down."""

    def __init__(self, driver: str) -> None:
        self._scheduler = scheduler_of(Scheduling(scheduler_driver=driver))
        self.plans: list[BuildPlan] = []

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        self.plans.append(self._scheduler.plan(hosts, spec))
        return self.plans[-1]


def oversold(workload: Workload, plans: list[BuildPlan], totals: dict[str, int]) -> list[str]:
    """Add up all arrivals independently, and name the hosts that ever held too much."""
    stays: list[tuple[int, str]] = []
    starts = workload.requests()
    for first, made in zip(starts, plans, strict=False):
        stays += [(int(first) + n, entry.host) for n, entry in enumerate(made.entries)]
    found = []
    for server, host in stays:
        moment = workload.arrivals_s[server]
        beside = [
            other
            for other, where in stays
            if where == host and workload.arrivals_s[other] <= moment < workload.leavings_s[other]
        ]
        for name, total in totals.items():
            needs = workload.amounts_of(name)[workload.shape_codes[beside]]
            if needs.sum() > total:
                found.append(f"{host} at {moment}: {needs.sum()} of {total} {name}")
    return found


@settings(max_examples=120, deadline=None)
@given(
    rows=ROWS,
    hosts=st.integers(1, 4),
    driver=st.sampled_from(sorted(SCHEDULERS)),
    is_whole=st.booleans(),
    stops=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
)
def test_nothing_is_oversold_and_all_comes_back(
    rows: list[tuple[float, float, int, int]],
    hosts: int,
    driver: str,
    is_whole: bool,
    stops: bool,
    seed: int,
) -> None:
    workload = workload_of(rows)
    table = table_of(hosts_of(hosts), workload)
    before = picture(table)
    recorded = Recorded(driver)
    context = ReplayOptions(seed=seed, samples=9, is_whole=is_whole, stops_at_refusal=stops)
    replay = Replay(workload, table, recorded.plan, context, lambda: 0.0)
    outcome = replay.run(lambda _: None)

    kept = [
        made
        if not is_whole or len(made.entries) == asked
        else BuildPlan((), {}, made.hosts, made.candidates, made.removals)
        for made, asked in zip(recorded.plans, outcome.asked, strict=True)
    ]
    totals = {"VCPU": 8, "MEMORY_MB": 16384}
    assert oversold(workload, kept, totals) == []
    assert outcome.placed.sum() == sum(len(made.entries) for made in kept)
    assert (outcome.refused >= 0).all()
    for name in totals:
        used, stranded = outcome.samples.used[name], outcome.samples.stranded[name]
        assert (used + stranded <= outcome.capacity[name]).all()
        assert (used >= 0).all()
    assert (outcome.samples.empty_hosts <= hosts).all()
    if not stops:
        assert outcome.requested.sum() == workload.count
        assert outcome.samples.moments_s.shape == (8,)

    replay.leave_all()
    assert picture(table) == before
