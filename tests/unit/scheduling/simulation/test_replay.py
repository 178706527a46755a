"""Replays and their measures, compared with a slow replay without columns."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count

import numpy as np
import pytest

from innkeeper.domain.slices import Scheduling
from innkeeper.entrypoints.simulator.policies import parse
from innkeeper.scheduling.simulation.fleets import table_of
from innkeeper.scheduling.simulation.measures import ReplayOutcome
from innkeeper.scheduling.simulation.replay import Replay, ReplayOptions
from innkeeper.scheduling.simulation.workload import Workload
from innkeeper.systems.compute.boot.drivers import rules_of, scheduler_of
from tests.support.tables import picture
from tests.support.workloads import SHAPES, Plain, Row, first_fit, forever, hosts_of, workload_of

HOSTS = 4


def ticking() -> Callable[[], float]:
    """A clock on which everything takes a second."""
    ticks = count()
    return lambda: float(next(ticks))


def some_rows(seed: int, servers: int = 60) -> list[Row]:
    dice = random.Random(seed)  # noqa: S311 - must be repeatable, not secret
    rows: list[Row] = []
    for batch in range(servers // 3):
        moment = float(dice.randrange(0, 300))
        for _ in range(dice.randrange(1, 6)):
            lifetime = forever() if dice.random() < 0.1 else float(dice.randrange(1, 90))
            rows.append((moment, lifetime, dice.randrange(3), batch))
    return rows


def replayed(workload: Workload, options: ReplayOptions, hosts: int = HOSTS) -> ReplayOutcome:
    table = table_of(hosts_of(hosts), workload)
    return Replay(workload, table, first_fit, options, ticking()).run(lambda _: None)


@pytest.mark.parametrize("seed", range(8))
def test_a_replay_comes_out_as_the_slow_one(seed: int) -> None:
    workload = workload_of(some_rows(seed))
    outcome = replayed(workload, ReplayOptions(samples=17))
    whole = {"VCPU": 8, "MEMORY_MB": 16384}
    slow = Plain(workload, [dict(whole) for _ in range(HOSTS)]).until(np.inf)
    refused = [0, 0, 0]
    for server in slow.refused:
        refused[workload.shape_codes[server]] += 1
    assert outcome.refused.tolist() == refused
    assert outcome.requested.sum() == outcome.placed.sum() + sum(refused) == workload.count
    first = min((workload.arrivals_s[server] for server in slow.refused), default=None)
    assert outcome.first_refusal_s == first
    reference = workload.commonest().amounts
    assert outcome.samples.moments_s.shape == (16,)
    for at, moment in enumerate(outcome.samples.moments_s):
        then = Plain(workload, [dict(whole) for _ in range(HOSTS)]).until(float(moment))
        closed = [
            free
            for free in then.hosts
            if any(free[name] < amount for name, amount in reference.items())
        ]
        for name, total in whole.items():
            used = sum(total - free[name] for free in then.hosts)
            assert outcome.samples.used[name][at] == used
            assert outcome.samples.stranded[name][at] == sum(free[name] for free in closed)
        assert outcome.samples.empty_hosts[at] == then.hosts.count(whole)
        assert outcome.samples.servers[at] == len(then.placed)


def test_shares_are_of_all_hosts() -> None:
    workload = workload_of([(0, forever(), 1, 0), (100, forever(), 1, 1)])
    outcome = replayed(workload, ReplayOptions(samples=3), hosts=1)
    # The usage is measured halfway, and when the second server has arrived: 4 and 8 of 8 cores.
    assert outcome.samples.moments_s.tolist() == [50.0, 100.0]
    assert outcome.mean_used("VCPU") == 0.75
    assert outcome.most_used("VCPU") == 1.0
    # At the end, no third server fits, and 8 of 16 GiB are left over.
    assert outcome.mean_stranded("MEMORY_MB") == 0.25
    assert outcome.mean_stranded("VCPU") == 0.0


def test_a_sample_includes_departures_and_arrivals_at_its_time() -> None:
    workload = workload_of([(0, 50, 1, 0), (50, forever(), 0, 1), (100, forever(), 0, 2)])
    outcome = replayed(workload, ReplayOptions(samples=3), hosts=1)
    assert outcome.samples.moments_s.tolist() == [50.0, 100.0]
    assert outcome.samples.servers.tolist() == [1, 2]
    assert outcome.samples.used["VCPU"].tolist() == [1, 2]


def test_the_most_is_seen_however_short_it_is() -> None:
    crowd = [(1.0, 1.0, 0, at + 1) for at in range(6)]
    workload = workload_of([(0, forever(), 0, 0), *crowd, (100, forever(), 0, 9)])
    outcome = replayed(workload, ReplayOptions(samples=4), hosts=1)
    assert outcome.samples.used["VCPU"].max() == 2
    assert outcome.most_used("VCPU") == 7 / 8


@pytest.mark.parametrize("seed", range(4))
def test_the_most_is_that_of_the_slow_replay(seed: int) -> None:
    workload = workload_of(some_rows(seed))
    outcome = replayed(workload, ReplayOptions(samples=2))
    whole = {"VCPU": 8, "MEMORY_MB": 16384}
    used: dict[str, list[int]] = {name: [] for name in whole}
    for moment in np.unique(workload.arrivals_s):
        stays = Plain(workload, [dict(whole) for _ in range(HOSTS)]).until(float(moment))
        for name, total in whole.items():
            used[name].append(sum(total - free[name] for free in stays.hosts))
    assert {name: max(each) for name, each in used.items()} == outcome.peaks


def test_another_reference_strands_other_hosts() -> None:
    workload = workload_of([(0, forever(), 2, 0), (100, forever(), 0, 1)])
    by_commonest = replayed(workload, ReplayOptions(samples=2), hosts=1)
    by_large = replayed(workload, ReplayOptions(samples=2, reference=SHAPES[2]), hosts=1)
    assert by_commonest.mean_stranded("VCPU") == 0.0
    assert by_large.mean_stranded("VCPU") == 5 / 8


def test_a_request_may_want_all_or_none() -> None:
    workload = workload_of([(0, forever(), 1, 0)] * 9 + [(1, forever(), 1, 1)])
    some = replayed(workload, ReplayOptions(), hosts=4)
    assert some.placed.tolist() == [0, 8, 0]
    none = replayed(workload, ReplayOptions(is_whole=True), hosts=4)
    assert none.placed.tolist() == [0, 1, 0], "what was planned of nine is off again"
    assert none.samples.used["VCPU"][-1] == 4


def test_the_first_refusal_may_end_it() -> None:
    rows = [(float(at), forever(), 1, at) for at in range(20)]
    outcome = replayed(workload_of(rows), ReplayOptions(stops_at_refusal=True), hosts=2)
    assert outcome.requested.sum() == 5
    assert outcome.placed.sum() == 4
    assert outcome.first_refusal_s == 4.0
    assert outcome.decision_s.shape == (5,)


def test_departures_make_room_for_arrivals_at_the_same_time() -> None:
    workload = workload_of([(0, 10, 1, 0), (0, 10, 1, 0), (10, 5, 1, 1), (10, 5, 1, 1)])
    assert replayed(workload, ReplayOptions(), hosts=1).refused.sum() == 0


def test_a_departure_at_the_arrival_frees_everything() -> None:
    workload = workload_of([(float(at), 0.0, 1, at) for at in range(9)])
    assert replayed(workload, ReplayOptions(), hosts=1).refused.sum() == 0


def test_times_are_those_of_the_clock() -> None:
    workload = workload_of([(0, 1, 0, 0)] * 3 + [(5, 1, 0, 1)])
    outcome = replayed(workload, ReplayOptions())
    assert outcome.decision_s.tolist() == [1.0, 1.0]
    assert outcome.asked.tolist() == [3, 1]
    assert outcome.decision_us(50) == 1e6
    assert outcome.servers_per_second == 2.0


def test_progress_counts_every_server_once() -> None:
    workload = workload_of([(float(at // 7), 3.0, 0, at // 7) for at in range(4000)])
    told: list[int] = []
    table = table_of(hosts_of(HOSTS), workload)
    Replay(workload, table, first_fit, ReplayOptions(), ticking()).run(told.append)
    assert sum(told) == 4000
    assert len(told) > 3


def test_the_same_seed_gives_the_same_and_another_one_something_else() -> None:
    workload = workload_of(some_rows(3, servers=120))

    def pictured(seed: int) -> object:
        table = table_of(hosts_of(12), workload)
        scheduler = scheduler_of(Scheduling())
        Replay(workload, table, scheduler.plan, ReplayOptions(seed=seed), ticking()).run(
            lambda _: None
        )
        return picture(table)

    assert pictured(1) == pictured(1)
    assert pictured(1) != pictured(2)


@pytest.mark.parametrize("seed", range(4))
def test_the_driver_to_compare_with_fits_as_by_hand(seed: int) -> None:
    workload = workload_of(some_rows(seed))
    by_hand, by_driver = (table_of(hosts_of(HOSTS), workload) for _ in range(2))
    Replay(workload, by_hand, first_fit, ReplayOptions(), ticking()).run(lambda _: None)
    (policy,) = parse(
        {"policy": ["f=;driver=first_fit"], "filters": None, "weighers": None, "driver": None}
    )
    planner = policy.scheduler().plan
    Replay(workload, by_driver, planner, ReplayOptions(), ticking()).run(lambda _: None)
    assert picture(by_driver) == picture(by_hand)


def test_servers_on_hosts_are_counted_where_a_filter_asks() -> None:
    workload = workload_of([(float(at), 500.0, 0, at) for at in range(80)])
    settings = Scheduling(
        default_host_filters=("NumInstancesFilter", "IoOpsFilter"), max_instances_per_host=5
    )
    scheduler = scheduler_of(settings)
    table = table_of(hosts_of(3, vcpus=64, memory_gb=512), workload)
    table.knows_servers = scheduler.pipeline.needs_servers
    options = ReplayOptions(rules=rules_of(settings))
    replay = Replay(workload, table, scheduler.plan, options, ticking())
    outcome = replay.run(lambda _: None)
    assert outcome.placed.sum() == 15, "five on each host"
    assert table.server_counts.tolist() == [5, 5, 5]
    assert table.busy_counts.tolist() == [0, 0, 0], "who was built is not being built"
    replay.leave_all()
    assert table.server_counts.tolist() == table.busy_counts.tolist() == [0, 0, 0]
