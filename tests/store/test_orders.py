"""What follows from orders: each result once, and nothing that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from innkeeper.domain.compute import Booted, OrderKind, Server, Status, WorkOrder
from innkeeper.domain.ids import ServerId
from innkeeper.store.queries import quota_usages
from innkeeper.store.queries import servers as rows
from innkeeper.systems.compute import servers, work
from innkeeper.systems.compute.work import Result
from tests.support.clouds import AGENT, NOW, Cloud, cloud_in, reported

TIMEOUT_S = 600.0
LATER = NOW + timedelta(seconds=TIMEOUT_S + 1)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """One host with room for four servers."""
    made = cloud_in(tmp_path, reported("h1"))
    yield made
    made.close()


def boot(cloud: Cloud, count: int = 1) -> list[ServerId]:
    """Boot servers; their builds wait."""
    (booted,) = cloud.boot(cloud.request(count))
    assert isinstance(booted, Booted)
    return list(booted.server_ids)


def waiting(cloud: Cloud) -> list[WorkOrder]:
    """The agent's orders."""
    found: list[WorkOrder] = cloud.read(lambda tx: work.waiting(tx, AGENT.id, 0, 1000))
    return found


def settle(cloud: Cloud, *results: Result, now: datetime = NOW) -> list[bool]:
    """Tell results; gives which of them were news."""
    told = cloud.write(lambda tx: work.settle(tx, AGENT.id, results, now))
    return [is_news for _, is_news in told]


def server(cloud: Cloud, uuid: ServerId) -> Server | None:
    """A server that is not deleted."""
    found: Server | None = cloud.read(lambda tx: rows.by_uuid(tx, uuid))
    return found


def status(cloud: Cloud, uuid: ServerId) -> str:
    """A server's status; DELETED for one that is gone."""
    found = server(cloud, uuid)
    return Status.DELETED if found is None else found.status


def sweep(cloud: Cloud, now: datetime = LATER) -> int:
    """End what is late."""
    count: int = cloud.write(lambda tx: work.sweep(tx, TIMEOUT_S, now))
    return count


def delete(cloud: Cloud, uuid: ServerId, now: datetime = NOW) -> None:
    """Ask for a server's deletion."""
    cloud.write(
        lambda tx: servers.delete(tx, uuid, now, service_down_time_s=60.0, may_override=True)
    )


def test_clearing_away_a_late_build_leaves_the_server_and_its_fault(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    sweep(cloud)
    (undo,) = waiting(cloud)
    assert undo.kind == OrderKind.DESTROY
    assert settle(cloud, Result(undo.id, True), now=LATER) == [True]
    left = server(cloud, uuid)
    assert left is not None
    assert (left.status, left.host) == (Status.ERROR, None)
    assert left.fault is not None
    assert "did not confirm" in left.fault["message"]
    assert cloud.read(lambda tx: quota_usages.of_project(tx, "project")).servers == 1


def test_clearing_away_what_a_failed_build_left_leaves_the_server(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    (build,) = waiting(cloud)
    settle(cloud, Result(build.id, False, "No disk."))
    cloud.report(reported("h1", servers=(uuid,)))
    (clearing,) = waiting(cloud)
    settle(cloud, Result(clearing.id, True))
    assert status(cloud, uuid) == Status.ERROR
    cloud.judge()


def test_a_server_that_is_to_go_goes_though_its_build_failed(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    delete(cloud, uuid)
    build, destroy = waiting(cloud)
    assert settle(cloud, Result(build.id, False), Result(destroy.id, True)) == [True, True]
    assert status(cloud, uuid) == Status.DELETED
    assert cloud.read(lambda tx: quota_usages.of_project(tx, "project")).servers == 0
    cloud.judge()
