"""Following the feed: row by row while that is cheaper, otherwise a full reload."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from innkeeper.domain.ids import BEGINNING, Bookmark, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import ConsumerClaim
from innkeeper.snapshot import feed, provider_follower
from innkeeper.snapshot.providers import ProviderTable
from innkeeper.store import changes
from innkeeper.store.queries.placement import names
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.placement import claims, providers
from tests.support.change_feed import changes_since
from tests.support.clouds import FILE, NOW, Cloud, cloud_in, reported

ONE = "10000000-0000-4000-8000-000000000000"
HOUR = timedelta(hours=1)
MANY = 1_000


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud without hosts."""
    started = cloud_in(tmp_path)
    yield started
    started.close()


def table_of(cloud: Cloud) -> ProviderTable:
    """The table of the existing providers."""
    with cloud.store.read() as tx:
        return provider_follower.load_all(tx)


def tell(cloud: Cloud, times: int) -> None:
    """Add so many changes of one provider to the feed."""

    def write(tx: Tx) -> None:
        changes.add_always_read(tx, [ProviderId(1)] * times, NOW)

    cloud.write(write)


def take(cloud: Cloud, table: ProviderTable) -> set[ProviderId] | None:
    """The rows that must be read again; ``None`` stands for all rows."""
    with cloud.store.read() as tx:
        taken = feed.take(tx, table)
        return None if taken is None else taken.stale


def claim(cloud: Cloud, number: int, pid: ProviderId, vcpus: int, seen: int | None) -> None:
    """Replace a consumer's allocation of processors."""
    uuid = ConsumerUuid(f"20000000-0000-4000-8000-{number:012}")
    generation = None if seen is None else Generation(seen)
    with cloud.store.write() as tx:
        amounts = {pid: {names.class_ids(tx)["VCPU"]: vcpus}}
        wanted = ConsumerClaim(uuid, "project", "user", amounts, generation)
        claims.replace(tx, [wanted], NOW)


def test_a_table_that_is_far_behind_is_reloaded(cloud: Cloud) -> None:
    cloud.write(lambda tx: providers.create(tx, ONE, "one", None, now=NOW))
    table = table_of(cloud)
    before = table.change_id
    most = feed.CHANGES_MIN + feed.CHANGES_PER_ROW * table.row_count
    tell(cloud, most - 1)
    assert take(cloud, table) == {1}
    assert table.change_id == before + most - 1
    tell(cloud, most)
    assert take(cloud, table) is None
    assert table.change_id == before + most - 1, "who reads everything says from where on"


def test_the_feed_returns_rows_in_order_up_to_the_limit(cloud: Cloud) -> None:
    cloud.write(lambda tx: providers.create(tx, ONE, "one", None, now=NOW))
    tell(cloud, 5)
    with cloud.store.read() as tx:
        every = changes.after(tx, BEGINNING)
        assert every is not None
        assert changes.after(tx, BEGINNING, 3) == every[:3]
        assert changes.after(tx, Bookmark(every[2].id, every[2].written_at)) == every[3:]


def test_rows_are_pruned_from_the_beginning(cloud: Cloud) -> None:
    """This is true even after a clock was set back: a reader before a gap must detect the gap."""
    cloud.write(lambda tx: providers.create(tx, ONE, "one", None, now=NOW))
    behind = table_of(cloud)
    for moment in (NOW + HOUR, NOW, NOW + HOUR):
        with cloud.store.write() as tx:
            changes.add_always_read(tx, [ProviderId(1)], moment)
    assert cloud.write(lambda tx: changes.prune(tx, NOW + HOUR / 2, MANY)) == 3
    assert take(cloud, behind) is None
    assert take(cloud, table_of(cloud)) == set()


def test_pruning_keeps_at_most_the_given_number(cloud: Cloud) -> None:
    cloud.write(lambda tx: providers.create(tx, ONE, "one", None, now=NOW))
    tell(cloud, 7)
    early = table_of(cloud)
    tell(cloud, 1)
    late = table_of(cloud)
    tell(cloud, 3)
    assert cloud.write(lambda tx: changes.prune(tx, NOW, 4)) == 8
    assert take(cloud, early) is None
    with cloud.store.read() as tx:
        assert len(changes_since(tx, late.bookmark)) == 3
    assert cloud.write(lambda tx: changes.prune(tx, NOW + HOUR, 0)) == 3
    assert cloud.write(lambda tx: changes.prune(tx, NOW + HOUR, 0)) == 0


def test_a_bookmark_is_found_again(store: Store) -> None:
    """A database that truncated timestamps would cause full reloads."""
    odd = NOW + timedelta(microseconds=123_457)
    with store.write() as tx:
        changes.add_always_read(tx, [ProviderId(1)], odd)
        changes.add_always_read(tx, [ProviderId(2)], odd)
    with store.read() as tx:
        told = changes.after(tx, BEGINNING)
        assert told is not None
        first, second = told
        assert changes.newest(tx) == (second.id, odd)
        assert changes.after(tx, Bookmark(first.id, first.written_at)) == [second]
        assert changes.after(tx, changes.newest(tx)) == []


def test_another_change_with_the_same_id_is_detected(cloud: Cloud) -> None:
    """A restored database reuses the ids after its backup."""
    file = cloud.folder / FILE
    cloud.write(lambda tx: providers.create(tx, ONE, "one", None, now=NOW))
    with closing(sqlite3.connect(file)) as live, closing(sqlite3.connect(":memory:")) as copy:
        live.backup(copy)
        tell(cloud, 2)
        ahead = table_of(cloud)
        copy.backup(live)
    behind = table_of(cloud)
    with cloud.store.write() as tx:
        changes.add_always_read(tx, [ProviderId(1)] * 3, NOW + HOUR)
    assert table_of(cloud).change_id > ahead.change_id > behind.change_id
    assert take(cloud, ahead) is None
    assert take(cloud, behind) == {1}


def test_claims_are_applied_without_reading_the_providers(cloud: Cloud) -> None:
    cloud.report(reported("a", vcpus=8, memory_mb=1024))
    table = table_of(cloud)
    (pid,) = table.index_of
    claim(cloud, 1, pid, 3, None)
    claim(cloud, 2, pid, 2, None)
    claim(cloud, 1, pid, 1, 1)
    assert take(cloud, table) == set()
    index = table.index_of[pid]
    assert (table.used["VCPU"][index], table.free["VCPU"][index]) == (3, 5)
    assert table.shows(pid, table_of(cloud).generation(index))
    assert take(cloud, table) == set()


def test_claims_after_a_missed_change_are_read(cloud: Cloud) -> None:
    cloud.report(reported("a", vcpus=8, memory_mb=1024))
    table = table_of(cloud)
    (pid,) = table.index_of
    cloud.report(reported("a", vcpus=9, memory_mb=1024))
    claim(cloud, 1, pid, 3, None)
    assert take(cloud, table) == {pid}
    assert table.used["VCPU"][0] == 0, "the caller reads the rows"
