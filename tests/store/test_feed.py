"""Following the feed: row by row while that is less work, and everything anew beyond that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.ids import ChangeId, ProviderId
from innkeeper.snapshot import feed, provider_loader
from innkeeper.snapshot.providers import ProviderTable
from innkeeper.store import changes
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import providers
from tests.support.clouds import NOW, Cloud, cloud_in

ONE = "10000000-0000-4000-8000-000000000000"


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud without hosts."""
    started = cloud_in(tmp_path)
    yield started
    started.close()


def table_of(cloud: Cloud) -> ProviderTable:
    """The providers there are, in columns."""
    with cloud.store.read() as tx:
        return provider_loader.load_all(tx)


def tell(cloud: Cloud, times: int) -> None:
    """Have the feed tell so often of the one provider."""

    def write(tx: Tx) -> None:
        changes.add_always_read(tx, [ProviderId(1)] * times, NOW)

    cloud.write(write)


def take(cloud: Cloud, table: ProviderTable) -> set[ProviderId] | None:
    """What of the table must be read again."""
    with cloud.store.read() as tx:
        return feed.take(tx, table)


def test_a_table_that_is_far_behind_is_read_anew(cloud: Cloud) -> None:
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


def test_rows_of_the_feed_are_given_in_order_and_no_more_than_are_asked_for(
    cloud: Cloud,
) -> None:
    cloud.write(lambda tx: providers.create(tx, ONE, "one", None, now=NOW))
    tell(cloud, 5)
    with cloud.store.read() as tx:
        every = changes.after(tx, ChangeId(0))
        assert changes.after(tx, ChangeId(0), 3) == every[:3]
        assert changes.after(tx, every[2][0]) == every[3:]
