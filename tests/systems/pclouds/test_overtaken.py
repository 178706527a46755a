"""Who is overtaken has written nothing, and is not told that there was no host."""

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
from innkeeper.systems.placement import generations, providers
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operations import Landlord

NAMES = ("a1", "b1")
WISHES = tuple(HostRequest(name, "gold") for name in ("one", "two"))
RIVAL = """
CREATE TRIGGER rival BEFORE UPDATE ON resource_providers
WHEN (SELECT COUNT(*) FROM pcloud_hosts) = 2 BEGIN SELECT RAISE(IGNORE); END
"""


@pytest.fixture
def landlord(tmp_path: Path) -> Iterator[Landlord]:
    """Two free hosts."""
    made = Landlord(Movers(tmp_path, *map(reported, NAMES)))
    made.define("gold", 1)
    for name in NAMES:
        made.switch_service(name, ServiceChange(is_disabled=True))
        made.pool("gold", name, by_aggregate=False)
    yield made
    made.movers.close()


@contextmanager
def overtaken(landlord: Landlord) -> Iterator[None]:
    """Have somebody else be faster whenever a second host is taken."""
    landlord.cloud.write(lambda tx: tx.exec_driver_sql(RIVAL))
    before = landlord.world()
    with pytest.raises(Overtaken):
        yield
    assert landlord.world() == before
    landlord.cloud.write(lambda tx: tx.exec_driver_sql("DROP TRIGGER rival"))


def names(landlord: Landlord) -> list[str]:
    """What the hosts in pclouds are called."""
    return sorted(each["name"] for each in landlord.world().members.values())


def test_of_several_hosts_none_is_taken(landlord: Landlord) -> None:
    uuid = landlord.create("project", name="p")
    with overtaken(landlord):
        landlord.allocate(uuid, *WISHES)
    landlord.allocate(uuid, *WISHES)
    assert names(landlord) == ["one", "two"]


def test_a_pcloud_that_grows_by_itself_grows_the_next_time(landlord: Landlord) -> None:
    landlord.create("project", name="p", size=SizePolicy(2, 2, "gold"))
    assert landlord.keep_sizes() == 1
    with overtaken(landlord):
        landlord.keep_sizes()
    assert landlord.keep_sizes() == 1
    assert names(landlord) == ["p~auto-1", "p~auto-2"]


def test_who_moves_a_provider_that_was_moved_since_is_overtaken(landlord: Landlord) -> None:
    cloud = landlord.cloud
    uuid = cloud.host("a1").provider_uuid

    def move(tx: Tx) -> None:
        seen = providers.get(tx, uuid)
        generations.advance(tx, seen, landlord.movers.now)
        generations.advance(tx, seen, landlord.movers.now)

    with pytest.raises(Overtaken, match="the provider was concurrently updated"):
        cloud.write(move)
