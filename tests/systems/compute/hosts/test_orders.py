"""Results of orders: each applies once, and only to the state that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from innkeeper.domain.compute import Booted, Server, Status
from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.domain.orders import OrderKind, OrderStatus, WorkOrder
from innkeeper.store.queries.compute import orders, quota_usages
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.queries.compute.quota_usages import QuotaUsage
from innkeeper.systems.compute.hosts import work
from innkeeper.systems.compute.moves import deletions
from innkeeper.systems.compute.servers import servers
from innkeeper.systems.compute.servers.results import Result
from tests.support.clouds import AGENT, NOW, Cloud, cloud_in, reported
from tests.support.statements import Counter

TIMEOUT_S = 600.0
LATER = NOW + timedelta(seconds=TIMEOUT_S + 1)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """One host with room for four servers."""
    made = cloud_in(tmp_path, reported("h1"))
    yield made
    made.close()


def boot(cloud: Cloud, count: int = 1) -> list[ServerId]:
    """Boot servers; their builds are pending."""
    (booted,) = cloud.boot(cloud.request(count))
    assert isinstance(booted, Booted)
    return list(booted.server_ids)


def waiting(cloud: Cloud) -> list[WorkOrder]:
    """The agent's orders."""
    found: list[WorkOrder] = cloud.read(lambda tx: work.waiting(tx, AGENT.id, 0, 1000))
    return found


def settle(cloud: Cloud, *results: Result, now: datetime = NOW) -> list[bool]:
    """Report results; returns which of them were new."""
    answers = cloud.write(lambda tx: work.record(tx, AGENT.id, results, now))
    return [is_new for _, is_new in answers]


def server(cloud: Cloud, uuid: ServerId) -> Server | None:
    """A server that exists."""
    found: Server | None = cloud.read(lambda tx: server_rows.by_uuid(tx, uuid))
    return found


def status(cloud: Cloud, uuid: ServerId) -> str:
    """A server's status, or DELETED."""
    found = server(cloud, uuid)
    return Status.DELETED if found is None else found.status


def sweep(cloud: Cloud, now: datetime = LATER) -> int:
    """Time out late orders."""
    count: int = cloud.write(lambda tx: work.sweep(tx, TIMEOUT_S, now))
    return count


def delete(cloud: Cloud, uuid: ServerId, now: datetime = NOW) -> None:
    """Begin to delete a server."""
    cloud.write(
        lambda tx: deletions.delete(tx, uuid, now, service_down_time_s=60.0, may_override=True)
    )


def test_cleaning_up_a_late_build_keeps_the_server_and_its_fault(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    sweep(cloud)
    (undo,) = waiting(cloud)
    assert undo.kind == OrderKind.DESTROY
    assert settle(cloud, Result(undo.id, True), now=LATER) == [True]
    left = server(cloud, uuid)
    assert left is not None
    assert (left.status, left.host) == (Status.ERROR, None)
    assert left.fault is not None
    assert left.fault["message"] == "The host could not build the server."
    assert "did not confirm" in left.fault["details"]
    assert cloud.read(lambda tx: quota_usages.of_project(tx, "project")).servers == 1


def test_a_failed_clean_up_of_a_late_build_is_repeated_until_it_succeeds(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    sweep(cloud)
    (undo,) = waiting(cloud)
    settle(cloud, Result(undo.id, False, "busy"), now=LATER)
    assert waiting(cloud) == []
    sweep(cloud, LATER + timedelta(seconds=TIMEOUT_S - 1))
    assert waiting(cloud) == []
    sweep(cloud, LATER + timedelta(seconds=TIMEOUT_S + 1))
    (again,) = waiting(cloud)
    assert (again.kind, again.server_uuid, again.id > undo.id) == (OrderKind.DESTROY, uuid, True)
    settle(cloud, Result(again.id, True), now=LATER)
    sweep(cloud, LATER + timedelta(seconds=3 * TIMEOUT_S))
    assert waiting(cloud) == []
    assert status(cloud, uuid) == Status.ERROR
    cloud.judge()


def test_a_server_that_is_on_the_host_again_is_not_destroyed_by_a_late_clean_up(
    cloud: Cloud,
) -> None:
    (uuid,) = boot(cloud)
    sweep(cloud)
    (undo,) = waiting(cloud)
    settle(cloud, Result(undo.id, False, "busy"), now=LATER)
    back = {"host": "h1", "status": Status.ACTIVE}
    left = server(cloud, uuid)
    assert left is not None
    cloud.write(lambda tx: server_rows.change(tx, uuid, left.updated_at, back))
    sweep(cloud, LATER + timedelta(seconds=TIMEOUT_S + 1))
    assert waiting(cloud) == []


def test_cleaning_up_a_failed_build_keeps_the_server(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    (build,) = waiting(cloud)
    settle(cloud, Result(build.id, False, "No disk."))
    cloud.report(reported("h1", servers=(uuid,)))
    (clearing,) = waiting(cloud)
    settle(cloud, Result(clearing.id, True))
    assert status(cloud, uuid) == Status.ERROR
    cloud.judge()


def test_a_server_being_deleted_is_deleted_although_its_build_failed(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    delete(cloud, uuid)
    build, destroy = waiting(cloud)
    assert settle(cloud, Result(build.id, False), Result(destroy.id, True)) == [True, True]
    assert status(cloud, uuid) == Status.DELETED
    assert cloud.read(lambda tx: quota_usages.of_project(tx, "project")).servers == 0
    cloud.judge()


def test_a_result_repeated_in_one_request_is_new_once(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    (build,) = waiting(cloud)
    results = [Result(build.id, True), Result(build.id, False), Result(build.id + 1, True)]
    assert settle(cloud, *results) == [True, False, False]
    assert settle(cloud, Result(build.id, False)) == [False]
    assert status(cloud, uuid) == Status.ACTIVE


def test_results_of_another_agents_orders_are_not_new(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    (build,) = waiting(cloud)
    other = AgentId("b0000000-0000-4000-8000-000000000001")
    answers = cloud.write(lambda tx: work.record(tx, other, [Result(build.id, True)], NOW))
    assert answers == [(build.id, False)]
    assert status(cloud, uuid) == Status.BUILD
    assert [each.id for each in waiting(cloud)] == [build.id]


def test_results_about_one_server_apply_in_order(cloud: Cloud) -> None:
    uuids = boot(cloud, 3)
    builds = waiting(cloud)
    for uuid in uuids:
        delete(cloud, uuid)
    # Order the destruction again, as after an agent's report of a server that should be gone.
    destroys = waiting(cloud)[3:]
    again = [NewOrder(AGENT.id, "h1", uuid, OrderKind.DESTROY, {}) for uuid in uuids]
    cloud.write(lambda tx: orders.add(tx, again, NOW))
    repeated = waiting(cloud)[6:]
    outcomes = [(True, True, False), (False, False, True), (True, False, True)]
    results = [
        Result(order.id, outcomes[server][turn])
        for turn, part in enumerate((builds, destroys, repeated))
        for server, order in enumerate(part)
    ]
    assert settle(cloud, *results) == [True] * 9
    # The second server lost its host with its build. The third stayed at the first attempt: its
    # deletion failed, and was not requested again.
    wanted = [Status.DELETED, Status.DELETED, Status.ERROR]
    assert [status(cloud, uuid) for uuid in uuids] == wanted
    cloud.judge()


def test_a_failed_deletion_is_reported_and_may_be_retried(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    settle(cloud, Result(waiting(cloud)[0].id, True))
    delete(cloud, uuid)
    settle(cloud, Result(waiting(cloud)[0].id, False, "No."))
    left = server(cloud, uuid)
    assert left is not None
    assert (left.status, left.task_state, left.host) == (Status.ERROR, None, "h1")
    assert left.fault is not None
    assert left.fault["message"] == "A host could not carry out the order 'destroy'."
    assert left.fault["details"] == "No."
    delete(cloud, uuid)
    settle(cloud, Result(waiting(cloud)[0].id, True))
    assert status(cloud, uuid) == Status.DELETED
    cloud.judge()


def test_an_order_ended_concurrently_rolls_back_all_results(cloud: Cloud) -> None:
    boot(cloud, 2)
    first, second = waiting(cloud)
    settle(cloud, Result(first.id, True))
    with pytest.raises(ConcurrentUpdate):
        cloud.write(lambda tx: orders.end(tx, [first.id, second.id], OrderStatus.DONE, NOW))
    assert [each.id for each in waiting(cloud)] == [second.id]


def test_usage_goes_down_for_every_project(cloud: Cloud) -> None:
    booted = cloud.boot(*(cloud.request(1, project_id=name) for name in ("a", "b", "a")))
    uuids = [each.server_ids[0] for each in booted if isinstance(each, Booted)]
    cloud.write(lambda tx: servers.finish_deletes(tx, uuids[:2], NOW))
    used = cloud.read(lambda tx: quota_usages.of_projects(tx, ["a", "b"]))
    assert used == {"a": QuotaUsage(1, 1, 1024), "b": QuotaUsage(0, 0, 0)}
    cloud.judge()


def test_many_results_take_as_many_statements_as_few(tmp_path: Path) -> None:
    cloud = cloud_in(tmp_path, reported("h1", vcpus=400, memory_mb=409_600, disk_gb=4000))
    counter = Counter(cloud)
    taken: list[list[int]] = []
    for count in (2, 100):
        boot(cloud, count)
        built = [Result(each.id, True) for each in waiting(cloud)]
        uuids = [each.server_uuid for each in waiting(cloud)]
        costs = [counter.of(partial(settle, cloud, *built))]
        for uuid in uuids:
            delete(cloud, uuid)
        destroys = [each.id for each in waiting(cloud)]
        refused = [Result(each, False, "No.") for each in destroys]
        costs.append(counter.of(partial(settle, cloud, *refused)))
        for uuid in uuids:
            delete(cloud, uuid)
        gone = [Result(each.id, True) for each in waiting(cloud)]
        costs.append(counter.of(partial(settle, cloud, *gone)))
        boot(cloud, count)
        costs.append(counter.of(partial(sweep, cloud)))
        settle(cloud, *(Result(each.id, True) for each in waiting(cloud)))
        taken.append(costs)
    few, many = taken
    assert few == many
    cloud.judge()
    cloud.close()
