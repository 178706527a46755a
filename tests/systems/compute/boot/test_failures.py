"""Failures in batches: only the failing step is affected, and nothing is lost."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Busy, Conflict, NotFound, Unavailable, Unreachable
from innkeeper.domain.ids import ServerId
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from tests.support.clouds import FILE, NOW, Cloud, cloud_in, faults, reported

ALL_PAGES = 1_000_000


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    """The log of a test. Structlog's default format of a traceback would take seconds."""
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of two hosts with room for four small servers each.

    It has one connection to read and one to write, so that a leaked connection is noticed.
    """
    started = cloud_in(tmp_path, reported("a"), reported("b"), readers_max=1)
    yield started
    started.reread()
    started.judge()
    started.close()


def close_host(name: str) -> Any:
    """A step that takes a host out of service."""

    def write(tx: Tx) -> str:
        hosts.change_service(tx, hosts.by_name(tx, name), ServiceChange(is_disabled=True), NOW)
        return "closed"

    return write


def raiser(error: Exception) -> Any:
    """A step that writes a lot and then fails."""

    def write(tx: Tx) -> None:
        close_host("a")(tx)
        raise error

    return write


def poisoned(cloud: Cloud) -> BootRequest:
    """An invalid request that cannot be written to the database."""
    return cloud.request(metadata={"k": object()})


def count_servers(cloud: Cloud, *requests: BootRequest) -> int:
    uuids: list[ServerId] = [uuid for each in requests for uuid in each.server_ids]
    return len(cloud.read(lambda tx: servers.alive(tx, uuids)))


def test_a_refusal_rolls_back_only_its_own_step(cloud: Cloud) -> None:
    answers = cloud.carry_out(
        ("write", raiser(Conflict("no"))),
        ("boot", cloud.request(8)),
        ("write", close_host("b")),
        ("write", raiser(NotFound("nowhere"))),
    )
    assert [type(each) for each in answers] == [Conflict, Booted, str, NotFound]
    assert list(cloud.table.is_open) == [name != "b" for name in cloud.table.names]
    assert cloud.table.used["VCPU"].sum() == 8


ACCIDENTS = [
    pytest.param(RuntimeError("boom"), id="an accident in Python"),
    pytest.param(MemoryError(), id="an accident without a message"),
    pytest.param(sqlite3.OperationalError("odd"), id="an accident of the driver"),
]


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_an_error_in_a_step_does_not_affect_other_steps(
    cloud: Cloud, accident: Exception, logs: list[Any]
) -> None:
    first, last = cloud.request(2), cloud.request(3)
    answers = cloud.carry_out(
        ("boot", first), ("write", raiser(accident)), ("boot", last), ("write", close_host("b"))
    )
    assert answers[1] is accident
    assert [type(answers[at]) for at in (0, 2, 3)] == [Booted, Booted, str]
    assert (count_servers(cloud, first), count_servers(cloud, last)) == (2, 3)
    assert cloud.table.used["VCPU"].sum() == 5, "nothing was done twice"
    assert [each["event"] for each in logs] == ["batch_repeated", "batch_failed"]


def test_a_step_with_invalid_sql_does_not_affect_other_steps(cloud: Cloud) -> None:
    request = cloud.request(2)
    answers = cloud.carry_out(
        ("boot", request),
        ("write", lambda tx: tx.exec_driver_sql("SELECT nothing FROM nowhere")),
        ("write", close_host("b")),
    )
    assert [type(each) for each in answers] == [Booted, Unavailable, str]
    assert count_servers(cloud, request) == 2


def test_an_error_in_a_boot_does_not_affect_other_boots(cloud: Cloud) -> None:
    good = [cloud.request(2) for _ in range(3)]
    answers = cloud.boot(good[0], poisoned(cloud), good[1], good[2])
    assert [isinstance(each, Booted) for each in answers] == [True, False, True, True]
    assert count_servers(cloud, *good) == 6
    assert cloud.table.used["VCPU"].sum() == 6


def test_an_error_alone_leaves_the_table_unchanged(cloud: Cloud) -> None:
    (answer,) = cloud.boot(poisoned(cloud))
    assert isinstance(answer, Exception)
    assert faults(cloud.boot(cloud.request(8))) == [None]


def test_explaining_claims_nothing_and_sees_the_boots_of_its_batch(cloud: Cloud) -> None:
    booted, explained, refused = cloud.carry_out(
        ("boot", cloud.request(6)), ("explain", cloud.request(2)), ("explain", cloud.request(3))
    )
    assert isinstance(booted, Booted)
    assert explained.explanation.fault is None
    assert len(explained.explanation.chosen) == 2
    assert "with room for 2 of 3 servers" in refused.explanation.fault
    assert refused.explanation.chosen == ()
    assert cloud.table.used["VCPU"].sum() == 6


def test_explaining_refuses_as_booting_does(cloud: Cloud) -> None:
    selection = cloud.request(flavor_id="nothing like it")
    explained, booted = cloud.carry_out(("explain", selection), ("boot", selection))
    assert (type(explained), explained.message) == (type(booted), booted.message)


# -- commits that fail -----------------------------------------------------------------------


def pragma(cloud: Cloud, text: str) -> Any:
    """Run a PRAGMA on the writing connection, outside of any transaction."""
    connection = cloud.store.engines.writing.raw_connection()
    try:
        return connection.cursor().execute(f"PRAGMA {text}").fetchone()
    finally:
        connection.close()


def full_disk(cloud: Cloud, is_full: bool) -> None:
    """Limit the database to its present number of pages, or lift the limit."""
    (used,), (free,) = pragma(cloud, "page_count"), pragma(cloud, "freelist_count")
    pragma(cloud, f"max_page_count={used - free if is_full else ALL_PAGES}")


def big(cloud: Cloud) -> BootRequest:
    """A request that needs new pages."""
    return cloud.request(2, user_data="x" * 60_000)


def test_a_full_disk_rejects_writes_and_loses_nothing(cloud: Cloud, logs: list[Any]) -> None:
    before = cloud.request(1)
    cloud.boot(before)
    full_disk(cloud, True)
    answers = cloud.carry_out(("boot", big(cloud)), ("boot", big(cloud)))
    assert [type(each) for each in answers] == [Unavailable, Unavailable]
    failed = [each for each in logs if each["event"] == "batch_failed"]
    assert len(failed) == 2
    assert "full" in str(failed[0]["exc_info"].__cause__), "the log says what it really was"
    assert count_servers(cloud, before) == 1
    full_disk(cloud, False)
    again = big(cloud)
    assert faults(cloud.boot(again)) == [None]
    assert count_servers(cloud, before, again) == 3
    assert cloud.table.used["VCPU"].sum() == 3


def test_a_full_disk_accepts_what_still_fits(cloud: Cloud) -> None:
    full_disk(cloud, True)
    answers = cloud.carry_out(
        ("boot", big(cloud)), ("write", close_host("b")), ("boot", big(cloud))
    )
    assert [type(each) for each in answers] == [Unavailable, str, Unavailable]
    full_disk(cloud, False)
    assert faults(cloud.boot(cloud.request(4))) == [None]
    assert cloud.table.used["VCPU"][cloud.table.index_by_name["a"]] == 4


def refuse_writes(raw: sqlite3.Connection, _record: object) -> None:
    """Make a connection read-only."""
    raw.execute("PRAGMA query_only=ON")


def query_only(cloud: Cloud, is_so: bool) -> None:
    """Make the writing connection read-only, and also each connection that replaces it."""
    pragma(cloud, f"query_only={'ON' if is_so else 'OFF'}")
    change = sa.event.listen if is_so else sa.event.remove
    change(cloud.store.engines.writing, "connect", refuse_writes)


def test_a_read_only_database_rejects_writes_and_loses_nothing(cloud: Cloud) -> None:
    cloud.boot(cloud.request(1))
    query_only(cloud, True)
    answers = cloud.carry_out(("boot", cloud.request(3)), ("write", close_host("a")))
    assert [type(each) for each in answers] == [Unreachable, Unreachable]
    assert cloud.store.trouble == "the database is read-only"
    query_only(cloud, False)
    assert faults(cloud.boot(cloud.request(7))) == [None]
    assert cloud.table.used["VCPU"].sum() == 8


def test_a_database_lost_while_steps_are_repeated_is_awaited_once(cloud: Cloud) -> None:
    """After an error, every step is repeated alone. Not every step may wait for the database."""

    attempts = itertools.count(1)

    def break_off(tx: Tx) -> None:
        # The failing step runs first with the other steps, and then alone.
        if next(attempts) > 1:
            tx.exec_driver_sql("PRAGMA query_only=ON")
            sa.event.listen(cloud.store.engines.writing, "connect", refuse_writes)
        raise RuntimeError

    boots = [("boot", cloud.request()) for _ in range(3)]
    answers = cloud.carry_out(("write", break_off), *boots)
    assert [type(each) for each in answers] == [RuntimeError, *[Unreachable] * 3]
    assert len(set(map(id, answers))) == 2, "no step waited twice"
    query_only(cloud, False)


def test_a_failed_commit_leaves_the_table_correct(cloud: Cloud, logs: list[Any]) -> None:
    """Everything is written and the table has followed; then the commit is rejected."""
    request = cloud.request(3)
    answers = cloud.carry_out(
        ("boot", request), ("write", close_host("a")), ("write", orphan_at_the_end)
    )
    assert [isinstance(each, Exception) for each in answers] == [False, False, True]
    assert [each["event"] for each in logs] == ["batch_repeated", "batch_failed"]
    assert count_servers(cloud, request) == 3
    cloud.reread()
    cloud.judge()
    assert list(cloud.table.is_open) == [name != "a" for name in cloud.table.names]


ORPHAN = "INSERT INTO flavor_projects (flavor_id, project_id) VALUES (987654, 'x')"


def orphan_at_the_end(tx: Tx) -> None:
    """Close a host, and write a row with a dangling reference, which the commit rejects."""
    tx.exec_driver_sql("PRAGMA defer_foreign_keys=ON")
    close_host("b")(tx)
    tx.exec_driver_sql(ORPHAN)


def test_a_writer_that_keeps_its_lock_rejects_the_batch_once(tmp_path: Path) -> None:
    cloud = cloud_in(tmp_path, reported("a"), busy_timeout_s=0.05)
    other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        answers = cloud.carry_out(("boot", cloud.request()), ("boot", cloud.request()))
        assert [type(each) for each in answers] == [Busy, Busy]
        assert answers[0] is answers[1], "no step waited twice"
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert faults(cloud.boot(cloud.request(4))) == [None]
    cloud.judge()
    cloud.close()


def test_hosts_of_a_failed_batch_are_removed_from_the_table(cloud: Cloud) -> None:
    def add_then_fail(tx: Tx) -> None:
        from_agent = [reported("c", availability_zone="north"), reported("a", vcpus=9)]
        cloud.report_in(tx, *from_agent)
        cloud.executor.follow(tx)
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError):
        cloud.write(add_then_fail)
    (refused,) = cloud.boot(cloud.request(availability_zone="north"))
    assert not isinstance(refused, Booted)
    assert sorted(cloud.table.names) == ["a", "b"]


def test_flavors_of_a_failed_batch_are_not_cached(cloud: Cloud) -> None:
    def delete_then_fail(tx: Tx) -> None:
        flavors.delete(tx, "small")
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError):
        cloud.write(delete_then_fail)
    assert faults(cloud.boot(cloud.request())) == [None]
