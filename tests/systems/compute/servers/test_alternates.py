"""Failed builds: the next best host is tried, and meanwhile the right hosts have allocations."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.compute import Booted, Status
from innkeeper.domain.grouping import ServerGroup
from innkeeper.domain.ids import ServerId
from innkeeper.domain.placing import GroupPolicy
from innkeeper.domain.slices import Scheduling
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.compute.hosts import hosts, work
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.compute.servers import history
from innkeeper.systems.compute.servers.results import Result
from tests.support.clouds import AGENT, NOW, reported
from tests.support.moves import OTHER, SMALL_TAKES, Movers

GROUP_ID = "c0000000-0000-4000-8000-000000000001"


def hosts_of(*names: str, **more: Any) -> list[Any]:
    """Equal hosts."""
    return [reported(name, **more) for name in names]


def boot(movers: Movers, count: int = 1, **more: Any) -> list[ServerId]:
    """Servers with pending builds."""
    request = movers.cloud.request(count, now=movers.now, **more)
    (booted,) = movers.cloud.boot(request)
    assert isinstance(booted, Booted)
    assert booted.fault is None, booted.fault
    return list(booted.server_ids)


def test_a_failed_build_goes_to_the_next_host_and_is_cleaned_up(tmp_path: Path) -> None:
    movers = Movers(tmp_path, *hosts_of("a1", "b1", "a2"))
    (uuid,) = boot(movers)
    seen = []
    for attempt in (1, 2, 3):
        (order,) = movers.waiting("build")
        assert movers.state(uuid) == ("BUILD", "spawning", order.host)
        assert movers.held(uuid) == {order.host: SMALL_TAKES}
        seen.append(order.host)
        if attempt < 3:
            movers.tell("build", uuid, f"{order.host} has no disk.")
    assert sorted(seen) == ["a1", "a2", "b1"]
    left = [("destroy", seen[0]), ("destroy", seen[1]), ("build", seen[2])]
    assert sorted(movers.pending_orders()) == sorted(left)
    movers.finish()
    assert movers.state(uuid) == ("ACTIVE", None, seen[2])
    action = movers.cloud.read(lambda tx: history.action(tx, uuid, "req-1"))
    events = [(each.host, each.result, each.message) for each in action.events]
    assert events == [
        (seen[0], "Error", f"{seen[0]} has no disk."),
        (seen[1], "Error", f"{seen[1]} has no disk."),
        (seen[2], "Success", None),
    ]
    movers.close()


def test_without_further_hosts_the_fault_counts_the_attempts(tmp_path: Path) -> None:
    movers = Movers(tmp_path, *hosts_of("a1", "a2", "a3", "a4"))
    (uuid,) = boot(movers)
    for _ in range(3):
        movers.tell("build", uuid, "No disk.")
    assert movers.state(uuid) == ("ERROR", None, None)
    fault = movers.server(uuid).fault
    assert fault is not None
    assert fault["message"] == "None of 3 hosts built the server."
    assert fault["details"] in {f"{name}: No disk." for name in ("a1", "a2", "a3", "a4")}
    assert movers.held(uuid) == {}
    movers.finish()
    movers.close()


def test_a_build_that_times_out_goes_to_the_next_host(tmp_path: Path) -> None:
    movers = Movers(tmp_path, *hosts_of("a1", "b1"))
    (uuid,) = boot(movers)
    (first,) = movers.waiting("build")
    movers.wait()
    movers.sweep()
    (second,) = movers.waiting("build")
    assert {first.host, second.host} == {"a1", "b1"}
    assert ("destroy", first.host) in movers.pending_orders()
    # The first host has built the server after all, but reports it too late.
    assert not movers.settle(first)
    movers.finish()
    assert movers.state(uuid) == ("ACTIVE", None, second.host)
    movers.close()


@pytest.mark.parametrize("reason", ["down", "closed", "full", "gone"])
def test_closed_hosts_are_skipped(tmp_path: Path, reason: str) -> None:
    movers = Movers(tmp_path, *hosts_of("a1", "b1", "b2", vcpus=1))
    (uuid,) = boot(movers, forced_host=None)
    (order,) = movers.waiting("build")
    others = sorted({"a1", "b1", "b2"} - {order.host})
    if reason == "down":
        movers.cloud.write(lambda tx: close(tx, others, ServiceChange(is_forced_down=True)))
    elif reason == "closed":
        movers.cloud.write(lambda tx: close(tx, others, ServiceChange(is_disabled=True)))
    elif reason == "gone":
        for name in others:
            host = movers.cloud.host(name)
            movers.cloud.write(partial(hosts.remove_service, host=host, now=NOW))
    else:
        for name in others:
            boot(movers, forced_host=name)
    movers.settle(order, "No disk.")
    assert movers.state(uuid) == ("ERROR", None, None)
    movers.close()


def close(tx: Tx, names: list[str], how: ServiceChange) -> None:
    """Close hosts to new servers."""
    for name in names:
        hosts.change_service(tx, hosts.by_name(tx, name), how, NOW)


def test_servers_that_fail_together_do_not_oversell(tmp_path: Path) -> None:
    movers = Movers(tmp_path, *hosts_of("a1", vcpus=3), *hosts_of("a2", "b1", vcpus=1))
    uuids = boot(movers, 5, forced_host=None)
    builds = [Result(each.id, False, "No disk.") for each in movers.waiting("build")]
    # One request has all results of an agent. The only free room is what these results release.
    for agent in (AGENT, OTHER):
        movers.cloud.write(
            partial(
                work.record, agent_id=agent.id, results=builds, now=NOW, settings=movers.settings
            )
        )
        movers.judge()
    statuses = {movers.server(uuid).status for uuid in uuids}
    assert statuses <= {Status.BUILD, Status.ERROR}
    movers.finish()
    movers.judge()
    movers.close()


@pytest.mark.parametrize(
    ("policy", "is_third_there", "status"),
    [
        (GroupPolicy.ANTI_AFFINITY, False, Status.ACTIVE),
        (GroupPolicy.ANTI_AFFINITY, True, Status.ERROR),
        (GroupPolicy.SOFT_ANTI_AFFINITY, True, Status.ACTIVE),
        (GroupPolicy.AFFINITY, False, Status.ERROR),
    ],
)
def test_the_next_host_satisfies_the_group_policy(
    tmp_path: Path, policy: str, is_third_there: bool, status: str
) -> None:
    movers = Movers(tmp_path, *hosts_of("a1", "b1", "b2"))
    group = ServerGroup(GROUP_ID, "g", "project", "user", policy, None, NOW)
    movers.cloud.write(lambda tx: groups.create(tx, group, -1))
    first, second = boot(movers, 2, hints={"group": GROUP_ID}, forced_host=None)
    builds = {each.server_uuid: each for each in movers.waiting("build")}
    used = {each.host for each in builds.values()}
    assert (len(used) == 1) is (policy == GroupPolicy.AFFINITY)
    if is_third_there:
        (free,) = {"a1", "b1", "b2"} - used
        boot(movers, forced_host=free, hints={"group": GROUP_ID})
    movers.settle(builds[first])
    movers.settle(builds[second], "No disk.")
    movers.finish()
    assert movers.server(first).status == Status.ACTIVE
    assert movers.server(second).status == status
    movers.close()


def test_build_attempts_are_limited_by_a_setting(tmp_path: Path) -> None:
    movers = Movers(tmp_path, *hosts_of("a1", "a2"), scheduling=Scheduling(build_attempts_max=1))
    (uuid,) = boot(movers)
    movers.tell("build", uuid, "No disk.")
    assert movers.state(uuid) == ("ERROR", None, None)
    assert movers.pending_orders() == []
    movers.close()


def test_a_server_being_deleted_is_not_built_elsewhere(tmp_path: Path) -> None:
    movers = Movers(tmp_path, *hosts_of("a1", "a2"))
    (uuid,) = boot(movers)
    movers.delete(uuid)
    movers.tell("build", uuid, "No disk.")
    assert [kind for kind, _ in movers.pending_orders()] == ["destroy"]
    movers.finish()
    assert movers.server(uuid).status == Status.DELETED
    movers.close()
