"""Hosts of pclouds that are lost for good, which nobody has to keep or to pay for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from innkeeper.domain.errors import Conflict
from innkeeper.domain.pclouds import Pcloud
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts as machines
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import audit, hosts
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operations import Landlord

OWNER = "project"
LOST = ServiceChange(is_forced_down=True)
FOUND = ServiceChange(is_forced_down=False)


@pytest.fixture
def burnt(tmp_path: Path) -> Iterator[tuple[Landlord, str]]:
    """A pcloud whose host ``b1`` was lost, with what two servers left there."""
    landlord = Landlord(Movers(tmp_path, reported("a1"), reported("b1")))
    movers = landlord.movers
    landlord.define("large", 1)
    uuid = landlord.create(OWNER, name="p")
    for name in ("b1", "a1"):
        landlord.switch_service(name, ServiceChange(is_disabled=True))
        landlord.pool("large", name, by_aggregate=False)
        landlord.allocate(uuid, HostRequest(name, "large", None, True))
    gone, moved = (movers.boot("b1", hints={"pcloud": uuid}) for _ in range(2))
    landlord.switch_service("b1", LOST)
    movers.delete(gone)
    movers.evacuate(moved)
    movers.tell("evacuate", moved)
    landlord.switch(uuid, "b1", is_enabled=False)
    yield landlord, uuid
    landlord.movers.close()


def test_it_is_released_and_forgotten(burnt: tuple[Landlord, str]) -> None:
    landlord, uuid = burnt
    landlord.act_on(uuid, "b1", hosts.release)
    landlord.unpool("large", "b1", by_aggregate=False)
    host, now = landlord.cloud.host("b1"), landlord.movers.now
    landlord.cloud.write(partial(machines.remove_service, host=host, now=now))
    assert not landlord.cloud.read(lambda tx: list(audit.findings(tx)))


def test_one_that_is_only_silent_is_kept(burnt: tuple[Landlord, str]) -> None:
    landlord, uuid = burnt
    landlord.switch_service("b1", FOUND)
    with pytest.raises(Conflict, match="not empty"):
        landlord.act_on(uuid, "b1", hosts.release)


def test_nobody_gets_it_before_it_is_cleared(burnt: tuple[Landlord, str]) -> None:
    landlord, uuid = burnt
    landlord.act_on(uuid, "b1", hosts.release)
    landlord.switch_service("b1", FOUND)
    with pytest.raises(Conflict, match="on its way"):
        _put_in_by_hand(landlord, uuid)
    landlord.movers.finish()
    _put_in_by_hand(landlord, uuid)


def _put_in_by_hand(landlord: Landlord, uuid: str) -> None:
    def act(tx: Tx, pcloud: Pcloud, terms: PcloudContext) -> None:
        hosts.allocate_this(tx, pcloud, machines.by_name(tx, "b1"), terms)

    landlord.act(uuid, act)
