"""An overtaken allocation writes nothing, and does not report that hosts are used up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from innkeeper.domain.errors import Overtaken
from innkeeper.domain.pclouds import SizePolicy
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds.hosts import HostRequest
from innkeeper.systems.placement import providers
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator

NAMES = ("a1", "b1")
REQUESTS = tuple(HostRequest(name, "gold") for name in ("one", "two"))
RIVAL = """
CREATE TRIGGER rival BEFORE UPDATE ON resource_providers
WHEN (SELECT COUNT(*) FROM pcloud_hosts) = 2 BEGIN SELECT RAISE(IGNORE); END
"""


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[PcloudOperator]:
    """Two free hosts."""
    made = PcloudOperator(Movers(tmp_path, *map(reported, NAMES)))
    made.define("gold", 1)
    for name in NAMES:
        made.switch_service(name, ServiceChange(is_disabled=True))
        made.pool("gold", name, by_aggregate=False)
    yield made
    made.movers.close()


@contextmanager
def overtaken(operator: PcloudOperator) -> Iterator[None]:
    """Let another writer be faster whenever a second host is allocated."""
    operator.cloud.write(lambda tx: tx.exec_driver_sql(RIVAL))
    before = operator.world()
    with pytest.raises(Overtaken):
        yield
    assert operator.world() == before
    operator.cloud.write(lambda tx: tx.exec_driver_sql("DROP TRIGGER rival"))


def names(operator: PcloudOperator) -> list[str]:
    """The names of the hosts in pclouds."""
    return sorted(each["name"] for each in operator.world().members.values())


def test_an_overtaken_bulk_allocation_writes_nothing(operator: PcloudOperator) -> None:
    uuid = operator.create("project", name="p")
    with overtaken(operator):
        operator.allocate(uuid, *REQUESTS)
    operator.allocate(uuid, *REQUESTS)
    assert names(operator) == ["one", "two"]


def test_an_overtaken_size_policy_grows_at_the_next_turn(operator: PcloudOperator) -> None:
    operator.create("project", name="p", size=SizePolicy(2, 2, "gold"))
    assert operator.keep_sizes() == 1
    with overtaken(operator):
        operator.keep_sizes()
    assert operator.keep_sizes() == 1
    assert names(operator) == ["p~auto-1", "p~auto-2"]


def test_advancing_a_stale_generation_is_overtaken(operator: PcloudOperator) -> None:
    cloud = operator.cloud
    uuid = cloud.host("a1").provider_uuid

    def move(tx: Tx) -> None:
        seen = providers.get(tx, uuid)
        providers.advance(tx, seen, operator.movers.now)
        providers.advance(tx, seen, operator.movers.now)

    with pytest.raises(Overtaken, match="the provider was concurrently updated"):
        cloud.write(move)
