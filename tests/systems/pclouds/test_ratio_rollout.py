"""Rollouts of ratios to many hosts, in several transactions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.moves import Initiator
from innkeeper.domain.pclouds import Pcloud
from innkeeper.domain.slices import Dedicating
from innkeeper.engine.database import Database
from innkeeper.entrypoints.maintenance import auditing
from innkeeper.entrypoints.maintenance.auditing import AuditOptions
from innkeeper.store.queries.pclouds import pclouds as pcloud_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import aggregates
from innkeeper.systems.compute.hosts import hosts as compute_hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import (
    aggregate_edits,
    audit,
    host_flavors,
    hosts,
    pclouds,
    ratio_rollout,
)
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest
from innkeeper.systems.pclouds.ratio_rollout import ROLLED_OUT_AT_ONCE
from innkeeper.systems.placement import inventories
from tests.support.clouds import NOW, Cloud, cloud_in, reported

SETTINGS = Dedicating(quota_pcloud_units=-1)
CONTEXT = PcloudContext(SETTINGS, 60.0, Initiator("req-1", "project", "user"), NOW)
UUID = "b0000000-0000-4000-8000-000000000001"
HOSTS = 45
STEPS = 3
NAMES = [f"m{number:02}" for number in range(HOSTS)]
SPARE = "spare"


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    """A pcloud with many hosts, and one free host."""
    made = cloud_in(tmp_path, *(reported(name) for name in (*NAMES, SPARE)))

    def furnish(tx: Tx) -> None:
        flavor = host_flavors.create(tx, made.ids.uuid(), "large", "", 1, NOW)
        mine = pclouds.create(tx, UUID, "project", {"name": "p", "cpu_ratio": 2.0}, CONTEXT)
        # Each host joins the pool alone, so the next allocation takes it.
        for name in (*NAMES, SPARE):
            closed = ServiceChange(is_disabled=True)
            compute_hosts.change_service(tx, compute_hosts.by_name(tx, name), closed, NOW)
            host_flavors.add_host(tx, flavor, name, NOW)
            if name != SPARE:
                hosts.allocate(tx, mine, HostRequest(name, "large"), CONTEXT)

    made.write(furnish)
    return made


def found(cloud: Cloud) -> Pcloud:
    mine: Pcloud = cloud.read(lambda tx: pclouds.get(tx, UUID))
    return mine


def begin(cloud: Cloud, **facts: Any) -> Pcloud:
    """Take the first step only, like a process that dies then."""
    mine: Pcloud = cloud.write(lambda tx: pclouds.update(tx, pclouds.get(tx, UUID), facts, CONTEXT))
    return mine


def go_on(cloud: Cloud) -> int:
    return int(cloud.write(lambda tx: ratio_rollout.go_on(tx, UUID, CONTEXT)))


def finish(cloud: Cloud) -> int:
    """Take all steps; return their number."""
    steps = 0
    while found(cloud).is_rolling_out:
        go_on(cloud)
        steps += 1
    return steps


def ratio(cloud: Cloud, name: str) -> float:
    uuid = cloud.host(name).provider_uuid
    return float(
        cloud.read(lambda tx: inventories.get(tx, uuid, "VCPU").lines[0].inventory.allocation_ratio)
    )


def ratios(cloud: Cloud) -> list[float]:
    return [ratio(cloud, name) for name in NAMES]


def left(cloud: Cloud) -> int:
    mine = found(cloud)
    return int(cloud.read(lambda tx: ratio_rollout.left(tx, [mine])).get(mine.id, 0))


def act(cloud: Cloud, work: Callable[[Tx, Pcloud], Any]) -> Any:
    return cloud.write(lambda tx: work(tx, pclouds.get(tx, UUID)))


def release(cloud: Cloud, name: str) -> None:
    act(cloud, lambda tx, mine: hosts.release(tx, mine, hosts.get(tx, mine, name), CONTEXT))


def sound(cloud: Cloud) -> bool:
    cloud.judge()
    return not cloud.read(lambda tx: list(audit.findings(tx)))


def test_ratios_are_applied_in_steps(cloud: Cloud) -> None:
    assert ratios(cloud) == [2.0] * HOSTS
    assert begin(cloud, cpu_ratio=5.0).is_rolling_out
    assert ratios(cloud) == [5.0] * ROLLED_OUT_AT_ONCE + [2.0] * (HOSTS - ROLLED_OUT_AT_ONCE)
    assert left(cloud) == HOSTS - ROLLED_OUT_AT_ONCE
    assert sound(cloud)
    assert go_on(cloud) == HOSTS - 2 * ROLLED_OUT_AT_ONCE
    assert sound(cloud)
    assert go_on(cloud) == 0
    assert ratios(cloud) == [5.0] * HOSTS
    assert sound(cloud)
    assert not found(cloud).is_rolling_out
    assert cloud.read(ratio_rollout.due) == []


def test_one_update_takes_the_fewest_transactions(cloud: Cloud) -> None:
    begin(cloud, cpu_ratio=5.0)
    assert 1 + finish(cloud) == STEPS


def test_another_process_finishes_an_interrupted_rollout(cloud: Cloud) -> None:
    begin(cloud, cpu_ratio=5.0, ram_ratio=1.5)
    # Another process, which knows only the database.
    other = cloud.beside()
    assert other.read(ratio_rollout.due) == [UUID]
    finish(other)
    other.close()
    cloud.reread()
    assert ratios(cloud) == [5.0] * HOSTS
    assert sound(cloud)


def test_few_hosts_need_one_transaction(cloud: Cloud) -> None:
    for name in NAMES[ROLLED_OUT_AT_ONCE:]:
        release(cloud, name)
    assert not begin(cloud, cpu_ratio=5.0).is_rolling_out
    assert ratios(cloud)[:ROLLED_OUT_AT_ONCE] == [5.0] * ROLLED_OUT_AT_ONCE
    assert sound(cloud)


def test_a_second_update_restarts_the_rollout(cloud: Cloud) -> None:
    begin(cloud, cpu_ratio=5.0)
    go_on(cloud)
    begin(cloud, cpu_ratio=7.0)
    assert left(cloud) == HOSTS - ROLLED_OUT_AT_ONCE
    finish(cloud)
    assert ratios(cloud) == [7.0] * HOSTS
    assert sound(cloud)


def test_reverting_a_rollout_leaves_no_trace(cloud: Cloud) -> None:
    begin(cloud, cpu_ratio=None)
    assert sound(cloud)
    begin(cloud, cpu_ratio=2.0)
    finish(cloud)
    begin(cloud, cpu_ratio=None)
    finish(cloud)
    assert ratios(cloud) == [1.0] * HOSTS
    assert sound(cloud)


def test_a_host_that_joins_during_a_rollout_has_the_new_ratios(cloud: Cloud) -> None:
    begin(cloud, cpu_ratio=5.0)
    act(cloud, lambda tx, p: hosts.allocate(tx, p, HostRequest("late", "large"), CONTEXT))
    assert ratio(cloud, SPARE) == 5.0
    finish(cloud)
    assert ratio(cloud, SPARE) == 5.0
    assert sound(cloud)


def test_a_host_that_leaves_during_a_rollout_has_its_own_ratios(cloud: Cloud) -> None:
    begin(cloud, cpu_ratio=5.0)
    for name in (NAMES[0], NAMES[ROLLED_OUT_AT_ONCE - 1], NAMES[-1]):
        release(cloud, name)
        assert ratio(cloud, name) == 1.0
    assert sound(cloud)
    finish(cloud)
    assert sound(cloud)
    assert set(ratios(cloud)) == {1.0, 5.0}


def test_a_report_during_a_rollout_changes_no_ratio(cloud: Cloud) -> None:
    begin(cloud, cpu_ratio=5.0)
    cloud.report(reported(NAMES[0]), reported(NAMES[-1]))
    assert (ratio(cloud, NAMES[0]), ratio(cloud, NAMES[-1])) == (5.0, 2.0)
    finish(cloud)
    assert sound(cloud)


def test_a_pcloud_can_be_transferred_during_a_rollout(cloud: Cloud) -> None:
    begin(cloud, cpu_ratio=5.0)
    act(cloud, lambda tx, p: pclouds.transfer(tx, p, "other", CONTEXT))
    finish(cloud)
    assert found(cloud).project_id == "other"
    assert ratios(cloud) == [5.0] * HOSTS
    assert sound(cloud)


def test_a_pcloud_can_be_deleted_during_a_rollout(cloud: Cloud) -> None:
    begin(cloud, cpu_ratio=5.0)
    for name in NAMES:
        release(cloud, name)
    act(cloud, lambda tx, p: pclouds.delete(tx, p, CONTEXT))
    assert go_on(cloud) == 0
    assert ratios(cloud) == [1.0] * HOSTS
    assert sound(cloud)


def test_an_edit_of_the_aggregate_starts_a_rollout(cloud: Cloud) -> None:
    row = found(cloud).aggregate_id
    kept_by, wanted = aggregate_edits.owners(CONTEXT, "allowed"), {"cpu_allocation_ratio": "5"}
    cloud.write(lambda tx: aggregates.set_metadata(tx, row, wanted, NOW, kept_by))
    assert left(cloud) == HOSTS - ROLLED_OUT_AT_ONCE
    finish(cloud)
    assert sound(cloud)


@pytest.mark.parametrize("wanted", [5.0, None])
def test_an_audit_finds_and_repairs_hosts_without_a_rollout(
    cloud: Cloud, wanted: float | None
) -> None:
    begin(cloud, cpu_ratio=wanted)
    cloud.write(lambda tx: pcloud_rows.roll_out(tx, found(cloud).id, None))
    behind = HOSTS - ROLLED_OUT_AT_ONCE
    broken = cloud.read(lambda tx: {each.key for each in audit.findings(tx)})
    assert broken == set(NAMES[ROLLED_OUT_AT_ONCE:])
    written: list[str] = []
    status = auditing.run(
        Database(cloud.store), lambda: NOW, written.append, AuditOptions(repairs=True)
    )
    assert status == auditing.SOUND, written
    assert f"{behind} repairs\n" in written
    cloud.reread()
    assert sound(cloud)
    assert ratios(cloud) == [wanted or 1.0] * HOSTS


def test_other_updates_start_no_rollout(cloud: Cloud) -> None:
    mine = begin(cloud, name="other")
    assert not mine.is_rolling_out
    assert replace(mine, updated_at=NOW).name == "other"
