"""Hosts of pclouds that are lost for good can be released and are no longer paid for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from innkeeper.domain.errors import Conflict
from innkeeper.domain.pclouds import Pcloud
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts as compute_hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import audit, hosts
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator

OWNER = "project"
LOST = ServiceChange(is_forced_down=True)
FOUND = ServiceChange(is_forced_down=False)


@pytest.fixture
def burnt(tmp_path: Path) -> Iterator[tuple[PcloudOperator, str]]:
    """A pcloud whose host ``b1`` was lost, with the remains of two servers."""
    operator = PcloudOperator(Movers(tmp_path, reported("a1"), reported("b1")))
    movers = operator.movers
    operator.define("large", 1)
    uuid = operator.create(OWNER, name="p")
    for name in ("b1", "a1"):
        operator.switch_service(name, ServiceChange(is_disabled=True))
        operator.pool("large", name, by_aggregate=False)
        operator.allocate(uuid, HostRequest(name, "large", None, True))
    gone, moved = (movers.boot("b1", hints={"pcloud": uuid}) for _ in range(2))
    operator.switch_service("b1", LOST)
    movers.delete(gone)
    movers.evacuate(moved)
    movers.tell("evacuate", moved)
    operator.switch(uuid, "b1", is_enabled=False)
    yield operator, uuid
    operator.movers.close()


def test_a_lost_host_is_released_and_deleted(burnt: tuple[PcloudOperator, str]) -> None:
    operator, uuid = burnt
    operator.act_on(uuid, "b1", hosts.release)
    operator.unpool("large", "b1", by_aggregate=False)
    host, now = operator.cloud.host("b1"), operator.movers.now
    operator.cloud.write(partial(compute_hosts.remove_service, host=host, now=now))
    assert not operator.cloud.read(lambda tx: list(audit.findings(tx)))


def test_a_silent_host_is_kept(burnt: tuple[PcloudOperator, str]) -> None:
    operator, uuid = burnt
    operator.switch_service("b1", FOUND)
    with pytest.raises(Conflict, match="not empty"):
        operator.act_on(uuid, "b1", hosts.release)


def test_a_lost_host_is_not_allocated_before_it_is_cleared(
    burnt: tuple[PcloudOperator, str],
) -> None:
    operator, uuid = burnt
    operator.act_on(uuid, "b1", hosts.release)
    operator.switch_service("b1", FOUND)
    with pytest.raises(Conflict, match="is moving from or to it"):
        _put_in_by_hand(operator, uuid)
    operator.movers.finish()
    _put_in_by_hand(operator, uuid)


def _put_in_by_hand(operator: PcloudOperator, uuid: str) -> None:
    def act(tx: Tx, pcloud: Pcloud, context: PcloudContext) -> None:
        hosts.allocate_this(tx, pcloud, compute_hosts.by_name(tx, "b1"), context)

    operator.act(uuid, act)
