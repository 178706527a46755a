"""The audit of a running process's host table against the store."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from innkeeper.systems.compute.hosts import table_audit
from innkeeper.systems.compute.hosts.table_audit import Compared
from innkeeper.systems.leases import freepool
from tests.support.clouds import NOW, Cloud, cloud_in, reported
from tests.support.pools import add_pool


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of three hosts, with a server."""
    started = cloud_in(tmp_path, *(reported(f"h{number}") for number in range(3)))
    started.boot(started.request(forced_host="h0", is_admin=True))
    yield started
    started.judge()
    started.close()


def compare(cloud: Cloud, first_row: int = 0) -> Compared:
    (done,) = cloud.carry_out(
        ("decide", (lambda tx, context: table_audit.compare(tx, context, first_row), NOW))
    )
    assert isinstance(done, Compared), done
    return done


def test_an_up_to_date_table_has_no_differences(cloud: Cloud) -> None:
    assert compare(cloud) == Compared(3, [], table_audit.ROWS)


def test_differences_are_reported_and_repaired(cloud: Cloud) -> None:
    index = cloud.table.index_by_name["h1"]
    cloud.table.free["VCPU"][index] = 99
    cloud.table.is_open[cloud.table.index_by_name["h2"]] = False
    differences = compare(cloud).differences
    assert differences == ["h2: is open: False, not True.", "h1: free VCPU: 99.0, not 4.0."]
    assert compare(cloud).differences == []


def test_differences_of_pools_are_reported_and_repaired(cloud: Cloud) -> None:
    cloud.write(add_pool)
    (row,) = cloud.table.pools.index_of.values()
    cloud.table.pools.take(row, {"DISK_GB": 7})
    assert compare(cloud, first_row=1).differences == []
    (differences,) = compare(cloud).differences
    assert "'free DISK_GB': 93.0" in differences
    assert "'free DISK_GB': 100.0" in differences
    assert compare(cloud).differences == []


def test_differences_of_the_calendar_are_reported_and_repaired(cloud: Cloud) -> None:
    cloud.write(partial(freepool.add, name="h1", capabilities={}, aggregate="pool", now=NOW))
    calendar = cloud.table.calendar
    calendar.replace([calendar.hosts[0].provider_id], [], [])
    (differences,) = compare(cloud).differences
    assert differences.startswith("Freepool host with provider")
    assert compare(cloud).differences == []
    assert calendar.host_count == 1


def test_after_the_last_row_the_audit_starts_again(cloud: Cloud) -> None:
    assert compare(cloud, first_row=2).rows == 1
    assert compare(cloud, first_row=3).rows == 3


def test_an_empty_table_has_no_differences(tmp_path: Path) -> None:
    cloud = cloud_in(tmp_path)
    assert compare(cloud) == Compared(0, [], 0)
    cloud.close()
