"""Filters that count the servers of hosts see each server that ends, or is no longer busy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.compute import Booted
from innkeeper.domain.ids import ServerId
from innkeeper.domain.slices import Scheduling
from innkeeper.systems.placement import allocations
from tests.support.clouds import faults, reported
from tests.support.moves import Movers

COUNTING = Scheduling(
    default_host_filters=(*Scheduling().default_host_filters, "IoOpsFilter", "NumInstancesFilter"),
    max_io_ops_per_host=1,
    max_instances_per_host=1,
)


@pytest.fixture
def movers(tmp_path: Path) -> Iterator[Movers]:
    """One large host, for one server."""
    made = Movers(tmp_path, reported("a1", vcpus=32, memory_mb=65536), scheduling=COUNTING)
    assert made.cloud.table.knows_servers
    yield made
    made.judge()
    made.close()


def without_allocations(movers: Movers, server: ServerId) -> ServerId:
    """Delete a server's allocations, as an administrator may do through Placement."""
    movers.cloud.write(lambda tx: allocations.delete(tx, server, movers.now))
    return server


def counts(movers: Movers) -> tuple[int, int]:
    """The numbers of servers and busy servers on the host."""
    table = movers.cloud.table
    return int(table.server_counts[0]), int(table.busy_counts[0])


def is_placed(movers: Movers) -> bool:
    return faults(movers.cloud.boot(movers.cloud.request(1, now=movers.now))) == [None]


def test_a_server_that_cannot_be_destroyed_is_no_longer_busy(movers: Movers) -> None:
    server = movers.boot()
    movers.delete(server)
    movers.cloud.reread()
    assert counts(movers) == (1, 1)
    movers.tell("destroy", server, "broken")
    movers.cloud.reread()
    assert counts(movers) == (1, 0)


def test_a_deleted_server_without_allocations_leaves_its_host(movers: Movers) -> None:
    server = without_allocations(movers, movers.boot())
    movers.delete(server)
    movers.tell("destroy", server)
    movers.cloud.reread()
    assert counts(movers) == (0, 0)
    assert is_placed(movers)


def test_a_failed_build_without_allocations_leaves_its_host(movers: Movers) -> None:
    (booted,) = movers.cloud.boot(movers.cloud.request(1, forced_host="a1", now=movers.now))
    assert isinstance(booted, Booted)
    (server,) = booted.server_ids
    movers.tell("build", without_allocations(movers, server), "broken")
    movers.cloud.reread()
    assert counts(movers) == (0, 0)
    assert is_placed(movers)
