"""Periodic tasks for pclouds and leases: one of all processes carries them out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from innkeeper.domain.ids import ConsumerUuid
from innkeeper.domain.leases import LeaseStatus
from innkeeper.domain.moves import Initiator
from innkeeper.domain.pclouds import Pcloud, SizePolicy
from innkeeper.domain.placement import ConsumerClaim
from innkeeper.domain.slices import Dedicating, Settings
from innkeeper.engine.periodic import PRUNE_PERIOD_S, SWEEP_PERIOD_S, PeriodicTasks
from innkeeper.engine.writer import Writer
from innkeeper.store.queries.placement.names import class_ids
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts as compute_hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import audit, host_flavors, hosts, pclouds, ratio_rollout, requests
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest
from innkeeper.systems.placement import claims
from tests.support.clouds import NOW, Cloud, cloud_in, reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers
from tests.tidy.tree import ROOT

CONTEXT = PcloudContext(
    Dedicating(quota_pcloud_units=-1), 60.0, Initiator("req-1", "project", "user"), NOW
)
UUID = "b0000000-0000-4000-8000-000000000001"
HOSTS = 10
STOP_S = 10.0
DAY_S = 86_400.0


class Serving:
    """A process on a cloud's database, with a clock, whose tasks the test runs."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.is_following = False
        self.now = NOW
        self.writer = Writer(cloud.store, cloud.executor)
        self.writer.start()
        periodic = PeriodicTasks(Settings(), cloud.store, self.writer, lambda: self.now, cloud.ids)
        self.tasks = {each.name: each for each in periodic.tasks(lambda: self.is_following)}

    def run(self, name: str, after_s: float) -> int:
        """Let some time pass, and run a task."""
        self.now += timedelta(seconds=after_s)
        return self.tasks[name].work()

    def stop(self) -> None:
        """End the process."""
        self.writer.stop(STOP_S)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A pcloud with some hosts, and a process."""
    names = [f"m{number:02}" for number in range(HOSTS)]
    cloud = cloud_in(tmp_path, *(reported(name) for name in names))

    def furnish(tx: Tx) -> None:
        flavor = host_flavors.create(tx, cloud.ids.uuid(), "large", "", 1, NOW)
        mine = pclouds.create(tx, UUID, "project", {"name": "p"}, CONTEXT)
        for name in names:
            closed = ServiceChange(is_disabled=True)
            compute_hosts.change_service(tx, compute_hosts.by_name(tx, name), closed, NOW)
            host_flavors.add_host(tx, flavor, name, NOW)
            hosts.allocate(tx, mine, HostRequest(name, "large"), CONTEXT)

    cloud.write(furnish)
    made = Serving(cloud)
    yield made
    made.stop()
    cloud.close()


def found(serving: Serving) -> Pcloud:
    mine: Pcloud = serving.cloud.read(lambda tx: pclouds.get(tx, UUID))
    return mine


def begin(serving: Serving, ratio: float) -> None:
    """Apply ratios to one host, like a process that is killed before the next."""
    serving.cloud.write(
        lambda tx: pclouds.update(tx, pclouds.get(tx, UUID), {"cpu_ratio": ratio}, CONTEXT, 1)
    )


def test_the_page_about_the_log_names_every_task(serving: Serving) -> None:
    page = (ROOT / "docs" / "operations" / "watching.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith("| `task_done`"))
    missing = sorted(name for name in serving.tasks if f"`{name}`" not in row)
    assert missing == [], f"The row of task_done in docs/operations/watching.md lacks {missing}."


def test_an_interrupted_ratio_rollout_is_finished(serving: Serving) -> None:
    begin(serving, 5.0)
    assert found(serving).is_rolling_out
    assert serving.run("pcloud_ratios", 0) == 1
    assert not found(serving).is_rolling_out
    assert not serving.cloud.read(lambda tx: list(audit.findings(tx)))
    assert serving.cloud.read(ratio_rollout.due) == []
    begin(serving, 6.0)
    # Another process has just run the task.
    assert serving.run("pcloud_ratios", 1) == 0
    assert serving.run("pcloud_ratios", SWEEP_PERIOD_S) == 1
    assert serving.run("pcloud_ratios", SWEEP_PERIOD_S) == 0


def test_a_follower_runs_a_task_only_when_the_leader_is_late(serving: Serving) -> None:
    begin(serving, 5.0)
    assert serving.run("pcloud_ratios", 0) == 1
    begin(serving, 6.0)
    serving.is_following = True
    assert serving.run("pcloud_ratios", SWEEP_PERIOD_S) == 0
    assert found(serving).is_rolling_out
    assert serving.run("pcloud_ratios", SWEEP_PERIOD_S) == 1
    assert not found(serving).is_rolling_out


def test_old_actions_are_deleted(serving: Serving) -> None:
    def actions() -> int:
        return len(serving.cloud.read(lambda tx: pclouds.actions(tx, UUID, limit=1000)))

    assert serving.run("old_pcloud_actions", 0) == 0
    before = actions()
    serving.now += timedelta(days=Dedicating().pcloud_actions_kept_days)
    assert serving.run("old_pcloud_actions", PRUNE_PERIOD_S) == before
    assert actions() == 0
    # The current billing period is kept.
    assert not serving.cloud.read(lambda tx: list(audit.findings(tx)))


def names_in(serving: Serving) -> list[str]:
    there = serving.cloud.read(lambda tx: hosts.page(tx, pclouds.get(tx, UUID)))
    return [each.name for each in there]


def release(serving: Serving, name: str) -> None:
    def act(tx: Tx) -> None:
        mine = pclouds.get(tx, UUID)
        hosts.release(tx, mine, hosts.get(tx, mine, name), CONTEXT)

    serving.cloud.write(act)


def test_a_pcloud_grows_to_the_size_that_it_keeps(serving: Serving) -> None:
    release(serving, "m00")
    assert serving.run("pcloud_sizes", 0) == 0
    size = {"size": SizePolicy(HOSTS, HOSTS, "large")}
    serving.cloud.write(lambda tx: pclouds.update(tx, pclouds.get(tx, UUID), size, CONTEXT))
    assert serving.run("pcloud_sizes", SWEEP_PERIOD_S) == 1
    assert len(names_in(serving)) == HOSTS
    assert serving.run("pcloud_sizes", SWEEP_PERIOD_S) == 0


def test_a_replaced_host_goes_when_it_is_empty(serving: Serving) -> None:
    release(serving, "m00")
    broken, held = serving.cloud.host("m01"), ConsumerUuid(serving.cloud.ids.uuid())

    def replace(tx: Tx) -> None:
        amounts = {broken.provider_id: {class_ids(tx)["VCPU"]: 1}}
        claims.replace(tx, [ConsumerClaim(held, "p", "u", amounts, None)], NOW)
        compute_hosts.change_service(tx, broken, ServiceChange(is_forced_down=True), NOW)
        hosts.replace(tx, pclouds.get(tx, UUID), "m01", CONTEXT)

    serving.cloud.write(replace)
    assert serving.run("replaced_hosts", 0) == 0
    assert "m01~1" in names_in(serving)
    serving.cloud.write(lambda tx: claims.release(tx, [held], NOW))
    assert serving.run("replaced_hosts", SWEEP_PERIOD_S) == 1
    assert "m01~1" not in names_in(serving)


def test_idempotency_tokens_expire_after_a_day(serving: Serving) -> None:
    def answered() -> str | None:
        found: str | None = serving.cloud.read(
            lambda tx: requests.answered(tx, pclouds.get(tx, UUID), "token", "asked")
        )
        return found

    serving.cloud.write(
        lambda tx: requests.begin(tx, pclouds.get(tx, UUID), "token", "asked", "said", NOW)
    )
    serving.run("old_pcloud_requests", 0)
    serving.run("old_pcloud_requests", DAY_S - PRUNE_PERIOD_S)
    assert answered() == "said"
    serving.run("old_pcloud_requests", 2 * PRUNE_PERIOD_S)
    assert answered() is None


def test_an_overtaken_lease_event_delays_no_other(tmp_path: Path) -> None:
    operator = LeaseOperator(Movers(tmp_path, reported("a1"), reported("b1")))
    operator.keep("a1", "b1")
    made = [operator.lease((1, 1), start=60) for _ in range(2)]
    (unlucky,) = operator.held(made[0])
    provider = operator.cloud.host(unlucky).provider_id
    rival = (
        f"CREATE TRIGGER rival BEFORE UPDATE ON resource_providers WHEN OLD.id = {provider} "
        "BEGIN SELECT RAISE(IGNORE); END"
    )
    operator.cloud.write(lambda tx: tx.exec_driver_sql(rival))
    serving = Serving(operator.cloud)
    assert serving.run("lease_events", 60) > 0
    assert list(map(operator.status, made)) == [LeaseStatus.STARTING, LeaseStatus.ACTIVE]
    operator.cloud.write(lambda tx: tx.exec_driver_sql("DROP TRIGGER rival"))
    assert serving.run("lease_events", SWEEP_PERIOD_S) > 0
    assert operator.status(made[0]) == LeaseStatus.ACTIVE
    # The agent is silent. After one step, the server counts as gone, and the lease only waits.
    operator.movers.boot(unlucky, hints={"reservation": made[0].reservations[0].uuid})
    operator.delete(made[0])
    assert [serving.run("lease_events", SWEEP_PERIOD_S) > 0 for _ in range(3)] == [1, 0, 0]
    serving.stop()
    operator.movers.close()
