"""Work of projects over simulated pods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from innkeeper.domain.pod_settings import Podding
from innkeeper.domain.pods import MEMORY_MB, VCPUS, VOLUME_GB
from innkeeper.scheduling.simulation.pod_replay import (
    DAY_S,
    PodOutcome,
    PodReplay,
    SimulatedPod,
    blank_pod,
)
from innkeeper.scheduling.simulation.pod_work import Job, WorkOptions, jobs_of
from innkeeper.scheduling.simulation.workload import NEVER
from innkeeper.systems.pods.policy import policy_of
from tests.support.workloads import workload_of

FILL = policy_of(Podding(), None, {"creation_time": 1.0})
SPREAD = policy_of(Podding(), None, {"idle_capacity": 1.0})
OWN = policy_of(Podding(), None, {"weight": 1.0})


def pod(number: int, vcpus: float = 10, added_s: float = 0.0, **fields: object) -> SimulatedPod:
    """Return a pod with these vcpus, and unlimited room for volumes."""
    made = replace(blank_pod(number), threshold_percent=100.0, **fields)  # type: ignore[arg-type]
    return SimulatedPod(made, {VCPUS: vcpus}, added_s)


def servers(
    at_s: float, vcpus: float, project: int = 0, *, row: int, until_s: float = NEVER
) -> Job:
    """Return a request for one server."""
    return Job(at_s, project, {VCPUS: vcpus}, (row,), (until_s,))


def volume(at_s: float, row: int, project: int = 0) -> Job:
    """Return a request for a volume for a server."""
    return Job(at_s, project, {VOLUME_GB: 1.0}, (row,), (NEVER,), is_volume=True)


def counts(found: PodOutcome) -> list[int]:
    """Return the number of servers that each pod got."""
    return [each.servers for each in found.pods]


@pytest.mark.parametrize("measure_s", [0.5, DAY_S])
def test_a_project_stays_in_its_pod_until_it_is_full(measure_s: float) -> None:
    work = [servers(float(row), 4, row=row) for row in range(4)]
    found = PodReplay(work, [pod(1), pod(2)], FILL, measure_s).run()
    assert counts(found) == [2, 2]
    assert (found.skipped, found.moves, found.moved, found.refused_servers) == (0, 1, 1, 0)


def test_a_pod_that_was_never_measured_is_found_to_be_full_by_asking_it() -> None:
    work = [servers(0.0, 1, project=9, row=0)]
    work += [servers(20.0 + row, 4, row=row + 1) for row in range(3)]
    added = pod(2, added_s=10.0, weight=1.0)
    found = PodReplay(work, [pod(1), added], OWN).run()
    assert (counts(found), found.skipped, found.moves) == ([2, 2], 1, 1)


LEFT = [servers(0.0, 1, project=1, row=0), servers(5.0, 8, row=1, until_s=15.0)]


def test_room_of_what_left_is_known_at_once_if_it_came_since_the_measurement() -> None:
    work = [*LEFT, servers(20.0, 9, project=2, row=2)]
    assert counts(PodReplay(work, [pod(1), pod(2)], FILL, DAY_S).run()) == [3, 0]


def test_room_of_what_left_is_known_with_the_next_measurement_otherwise() -> None:
    work = [*LEFT, servers(20.0, 9, project=2, row=2), servers(30.0, 9, project=3, row=3)]
    # Measurements are after 0, 12 and 24 seconds. The server that left after 15 is in the second.
    found = PodReplay(work, [pod(1), pod(2)], FILL, 12.0).run()
    assert counts(found) == [3, 1]


def test_a_request_that_no_pod_takes_is_refused_and_moves_nothing() -> None:
    work = [servers(0.0, 4, row=0), servers(1.0, 11, row=1), servers(2.0, 4, row=2)]
    found = PodReplay(work, [pod(1), pod(2)], FILL).run()
    assert (found.servers, found.refused_servers, found.moves) == (3, 1, 0)
    assert counts(found) == [2, 0]


def test_servers_that_leave_make_room() -> None:
    work = [servers(float(row), 10, row=row, until_s=row + 0.5) for row in range(3)]
    found = PodReplay(work, [pod(1)], FILL).run()
    assert found.refused_servers == 0
    assert found.pods[0].most_used == {VCPUS: 1.0}
    assert 0.0 < found.pods[0].mean_used[VCPUS] < 1.0


def test_projects_spread_by_the_weigher_of_the_service() -> None:
    work = [servers(10.0 * row, 1, project=row, row=row) for row in range(6)]
    assert counts(PodReplay(work, [pod(1), pod(2)], FILL, 5.0).run()) == [6, 0]
    assert counts(PodReplay(work, [pod(1), pod(2)], SPREAD, 5.0).run()) == [3, 3]


def test_a_pod_that_is_added_takes_new_projects_and_leaves_the_others() -> None:
    work = [servers(10.0 * row, 1, project=row % 4, row=row) for row in (0, 1, 4, 5, 6, 7)]
    later = pod(2, added_s=30.0, weight=1.0)
    found = PodReplay(work, [pod(1), later], OWN).run()
    assert (counts(found), found.moves) == ([4, 2], 0)


def test_a_pod_that_is_drained_gets_no_new_work() -> None:
    work = [servers(10.0 * row, 1, row=row) for row in range(4)]
    drained = replace(pod(1), drained_s=15.0)
    found = PodReplay(work, [drained, pod(2)], FILL).run()
    assert (counts(found), found.moves) == ([2, 2], 1)
    assert 0.0 < found.spread < 1.0


def test_a_volume_can_be_apart_from_its_server_after_a_move() -> None:
    work = [
        servers(0.0, 9, row=0),
        volume(1.0, 0),
        servers(2.0, 2, row=1),
        volume(3.0, 0),
        volume(4.0, 1),
    ]
    found = PodReplay(work, [pod(1), pod(2)], FILL).run()
    assert (found.volumes, found.refused_volumes, found.apart, found.moves) == (3, 0, 1, 1)


def test_a_server_that_was_refused_gets_no_volume() -> None:
    found = PodReplay([servers(0.0, 11, row=0), volume(1.0, 0)], [pod(1)], FILL).run()
    assert (found.refused_servers, found.volumes) == (1, 0)


def test_moves_are_counted_per_project_and_month() -> None:
    work = [servers(0.0, 10, row=0), servers(3 * DAY_S, 10, row=1)]
    found = PodReplay(work, [pod(1), pod(2)], FILL).run()
    assert (found.moves, found.projects, found.days) == (1, 1, 3.0)
    assert found.moves_per_month == 10.0


WORKLOAD = workload_of([(float(row), 1e9, row % 2, row // 3) for row in range(300)])


def test_the_work_has_all_servers_and_no_volume_before_its_server() -> None:
    work = jobs_of(WORKLOAD, WorkOptions(projects=5, volume_share=1.0))
    assert [each.at_s for each in work] == sorted(each.at_s for each in work)
    servers_ = [each for each in work if not each.is_volume]
    rows = [row for each in servers_ for row in each.rows]
    assert sorted(rows) == list(range(300))
    project_of = {row: each.project for each in servers_ for row in each.rows}
    one = servers_[0].one
    assert (one[VCPUS], one[MEMORY_MB]) == (1.0, 2048.0)
    volumes = [each for each in work if each.is_volume]
    assert volumes
    for each in volumes:
        (row,) = each.rows
        assert WORKLOAD.arrivals_s[row] < each.at_s < WORKLOAD.arrivals_s[-1]
        assert project_of[row] == each.project
    assert jobs_of(WORKLOAD, WorkOptions(projects=5, volume_share=1.0)) == work
    assert jobs_of(WORKLOAD, WorkOptions(projects=5, volume_share=1.0, seed=1)) != work
    assert not [e for e in jobs_of(WORKLOAD, WorkOptions(volume_share=0.0)) if e.is_volume]


def test_few_projects_do_most_unless_the_trace_names_projects() -> None:
    drawn = [each.project for each in jobs_of(WORKLOAD, WorkOptions(projects=50, volume_share=0))]
    assert drawn.count(0) > drawn.count(49)
    codes = np.arange(300) % 2
    named = replace(WORKLOAD, projects=("a", "b"), project_codes=codes)
    found = jobs_of(named, WorkOptions(projects=50, volume_share=0.0))
    assert {each.project for each in found} == {0, 1}


@pytest.mark.parametrize("policy", [FILL, SPREAD])
def test_the_same_work_has_the_same_results(policy: object) -> None:
    work = jobs_of(WORKLOAD, WorkOptions(projects=20))
    first, second = (
        PodReplay(work, [pod(1, 200), pod(2, 200)], policy, 10.0).run()  # type: ignore[arg-type]
        for _ in range(2)
    )
    assert first == second
