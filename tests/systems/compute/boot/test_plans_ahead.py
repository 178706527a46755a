"""Plans made ahead are used only for the decisions they were made for, and otherwise undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.slices import Scheduling
from innkeeper.snapshot import recording
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import plans_ahead
from innkeeper.systems.compute.boot.dry_run import Question
from innkeeper.systems.compute.boot.executor import BootExecutor
from tests.support.clouds import NOW, UNLIMITED, Cloud, begun_cloud, faults

OWN = "tests.support.own_plugins"
MORE: list[dict[str, Any]] = [
    {"hints": {"query": '[">=", "$free_ram_mb", 1]'}},
    {"may_be_elsewhere": True},
    {"is_across_zones": True},
    {"has_volumes": True},
    {"is_volume_backed": True},
]


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of three hosts with room for four small servers each, which has booted one."""
    with begun_cloud(tmp_path) as started:
        yield started


def columns(cloud: Cloud) -> dict[str, Any]:
    return dict(recording.copy_of(cloud.table).columns)


def planned(cloud: Cloud, *requests: BootRequest) -> None:
    assert [cloud.executor.plan_ahead(each) for each in requests] == [True] * len(requests)


def hosts_of(cloud: Cloud, request: BootRequest) -> list[str | None]:
    return [each.host for each in cloud.read(lambda tx: servers.alive(tx, request.server_ids))]


def test_a_plan_is_used_as_it_is(cloud: Cloud) -> None:
    first, second = cloud.request(2), cloud.request()
    planned(cloud, first, second)
    before = columns(cloud)
    assert faults(cloud.boot(first, second)) == [None, None]
    np.testing.assert_equal(columns(cloud), before, "the plans had depleted the table already")
    assert cloud.executor.plans_ahead() == (2, 0)
    assert len(hosts_of(cloud, first)) == 2


def test_a_refusal_may_be_planned_ahead(cloud: Cloud) -> None:
    large, small = cloud.request(12), cloud.request()
    planned(cloud, large, small)
    answers = cloud.boot(large, small)
    assert [each.fault is None for each in answers if isinstance(each, Booted)] == [False, True]
    assert cloud.executor.plans_ahead() == (2, 0)


TOO_MANY = 12
"""More servers than the hosts have room for."""
Use = Callable[[BootExecutor, Tx, BootRequest], object]
USES: list[Use] = [
    lambda executor, tx, request: executor.explain(tx, Question(request)),
    lambda executor, tx, request: executor.decide(tx, lambda *_: None, NOW),
    lambda executor, tx, request: executor.follow(tx),
    lambda executor, tx, request: executor.load(tx),
    lambda executor, tx, request: executor.forget(),
    lambda executor, tx, request: executor.boot_entries(
        tx, replace(request, is_refused_without_hosts=True)
    ),
]


@pytest.mark.parametrize("use", USES)
def test_all_other_uses_undo_the_plans_first(cloud: Cloud, use: Use) -> None:
    before = columns(cloud)
    planned(cloud, cloud.request(3), cloud.request(3))
    with cloud.store.write() as tx:
        cloud.executor.begin(tx)
        use(cloud.executor, tx, cloud.request(TOO_MANY))
    np.testing.assert_equal(columns(cloud), before)
    assert cloud.executor.plans_ahead() == (0, 2)


def test_an_explanation_does_not_count_planned_servers(cloud: Cloud) -> None:
    planned(cloud, cloud.request(8))
    (explained,) = cloud.carry_out(("explain", cloud.request(8)))
    assert explained.explanation.fault is None


def test_plans_for_boots_that_do_not_come_are_undone(cloud: Cloud) -> None:
    first, left, last = cloud.request(), cloud.request(4), cloud.request(4)
    planned(cloud, first, left, last)
    assert faults(cloud.boot(first, last)) == [None, None]
    assert cloud.executor.plans_ahead() == (1, 2)
    assert cloud.table.used["VCPU"].sum() == 6


def test_left_over_plans_are_undone_before_the_claims(cloud: Cloud) -> None:
    first = cloud.request()
    planned(cloud, first, cloud.request(), cloud.request())
    with cloud.store.write() as tx:
        cloud.executor.begin(tx)
        cloud.executor.boot(tx, [first])
        assert cloud.executor.plans_ahead() == (1, 2)
        cloud.executor.follow(tx)


def test_a_request_that_was_never_resolved_is_not_planned_ahead(cloud: Cloud) -> None:
    assert not cloud.executor.plan_ahead(cloud.request(project_id="another"))
    assert not cloud.executor.plan_ahead(cloud.request(availability_zone="nova"))


@pytest.mark.parametrize("more", MORE)
def test_a_request_that_must_be_looked_up_is_not_planned_ahead(
    cloud: Cloud, more: dict[str, Any]
) -> None:
    cloud.boot(cloud.request(**more))
    assert not cloud.executor.plan_ahead(cloud.request(**more))


def test_resolved_requests_are_limited(cloud: Cloud) -> None:
    users = [f"user {number}" for number in range(plans_ahead.RESOLVED_MAX)]
    cloud.boot(*(cloud.request(13, user_id=each, is_refused_without_hosts=True) for each in users))
    assert not cloud.executor.plan_ahead(cloud.request())
    planned(cloud, cloud.request(user_id="user 0"))


def test_recorded_decisions_are_not_made_ahead(cloud: Cloud) -> None:
    """The recording of a decision cannot be undone."""
    scheduling = Scheduling(record_decisions="all")
    assert not plans_with(cloud, BootExecutor(scheduling, UNLIMITED, keep=lambda _: None))


@pytest.mark.parametrize(
    "setting",
    [
        {"default_host_filters": ("ComputeFilter", f"{OWN}:RackFilter")},
        {"default_host_weighers": (f"{OWN}:RackWeigher",)},
        {"scheduler_driver": f"{OWN}:Taking"},
    ],
)
def test_plug_ins_do_not_decide_ahead(cloud: Cloud, setting: dict[str, Any]) -> None:
    """A plug-in may remember its decision, which cannot be undone."""
    assert not plans_with(cloud, BootExecutor(Scheduling(**setting), UNLIMITED))


def plans_with(cloud: Cloud, executor: BootExecutor) -> bool:
    cloud.executor = executor
    with cloud.store.read() as tx:
        executor.load(tx)
    assert faults(cloud.boot(cloud.request())) == [None]
    return executor.plan_ahead(cloud.request())
