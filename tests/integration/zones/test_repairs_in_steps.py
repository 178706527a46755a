"""Repairs of a zone with many servers below it, and with children that do not answer."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from innkeeper.commands import zone_audit
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zone_tree import ZoneServer, ZoneServerState
from innkeeper.engine.zones.booting import TreeBooter
from innkeeper.engine.zones.repairing import Repairer
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.store.queries.zones import children
from innkeeper.store.transactions import Tx
from innkeeper.systems.zones import remote
from tests.support.hostile_zones import (
    EAST,
    ZONE_ID,
    HostileZone,
    Raw,
    SeenRequest,
    hostile_zone,
    http,
)
from tests.support.running import Running, running
from tests.support.zone_parents import COMPUTE
from tests.support.zone_processes import SOON_S
from tests.support.zone_repairs import carry_out

pytestmark = pytest.mark.timeout(300)

SETTINGS: dict[str, Any] = {**EAST, "zone_poll_interval_s": 3600}
HELD = "/zones/servers"
OLD = timedelta(hours=1)
BATCHES = 5
CHILDREN = 2


@dataclass(slots=True)
class Parent:
    """A zone with children; the children's row ids are 1, 2 and so on."""

    zone: Running
    children: Sequence[HostileZone]
    repairer: Repairer

    def carry_out(self, work: Callable[[ZoneTree, TreeBooter], Awaitable[Any]]) -> Any:
        """Run work in an event loop, as the threads of the program do."""
        return carry_out(self.zone, work)

    def repair(self) -> int:
        """Run one round of repairs. Return the number of wrong servers."""
        return int(self.carry_out(self.repairer.work))

    def add(self, child_id: int, count: int, state: str, batch_min: int = 0) -> list[ServerId]:
        """Record old servers in a child zone, each of a boot batch of its own."""
        rows: list[ZoneServer] = []

        async def work(tree: ZoneTree, _: TreeBooter) -> None:
            at = tree.parts.clock() - OLD
            rows.extend(
                ZoneServer(
                    ServerId(str(uuid4())),
                    child_id,
                    f"r-{uuid4()}",
                    "lab",
                    "ann",
                    1,
                    1,
                    state,
                    batch_min,
                    at,
                    at,
                )
                for _ in range(count)
            )
            await tree.parts.engine.write(lambda tx: remote.add(tx, rows))

        self.carry_out(work)
        return [each.uuid for each in rows]


def asked_for(child: HostileZone) -> int:
    """Return how often a child was asked which servers it has."""
    return sum(each.path == HELD for each in child.asked)


@pytest.fixture
def parent(tmp_path: Any) -> Iterator[Parent]:
    with ExitStack() as ends:
        made = ends.enter_context(running(tmp_path, **SETTINGS))
        below = [ends.enter_context(hostile_zone()) for _ in range(CHILDREN)]
        for number, child in enumerate(below):
            child.info = {**child.info, "id": ZONE_ID[:-1] + str(number)}
            told = {"name": f"c{number}", "api_url": child.api_url, "username": "up"}
            wanted = {"zone": {**told, "password": "x"}}
            assert made.call("POST", f"{COMPUTE}/zones", "admin", json=wanted).is_success
        yield Parent(made, below, Repairer())


def refuses(asked: SeenRequest) -> Raw | None:
    """Fail when the zone asks which servers the child has."""
    return http({}, 500) if asked.path == HELD else None


def has_all(asked: SeenRequest) -> Raw | None:
    """Answer that the child has all servers that it is asked for."""
    if asked.path != HELD:
        return None
    rest = {"project_id": "lab", "user_id": "ann", "batch_id": "r", "is_undecided": False}
    rows = [{"id": each, "vcpus": 1, "memory_mb": 1, **rest} for each in asked.body["servers"]]
    return http({"servers": rows})


def test_a_round_asks_a_child_without_an_answer_once(parent: Parent) -> None:
    parent.add(1, BATCHES, ZoneServerState.BUILDING, 1)
    parent.add(1, BATCHES, ZoneServerState.BUILT)
    lost = parent.add(2, 1, ZoneServerState.BUILT)
    parent.children[0].answers = refuses
    parent.children[1].answers = lambda asked: http({"servers": []})
    assert parent.repair() == len(lost)
    assert asked_for(parent.children[0]) == 1
    parent.repair()
    assert asked_for(parent.children[0]) == 1 + 1


def test_a_round_does_not_wait_for_a_child_that_is_down(parent: Parent) -> None:
    parent.add(1, 1, ZoneServerState.BUILDING, 1)
    parent.add(1, 1, ZoneServerState.BUILT)
    parent.children[0].answers = refuses

    async def mark_down(tree: ZoneTree, _: TreeBooter) -> None:
        await tree.parts.engine.write(_all_down)

    parent.carry_out(mark_down)
    parent.repair()
    assert asked_for(parent.children[0]) == 0


def _all_down(tx: Tx) -> None:
    for each in children.every(tx):
        children.record(tx, each.uuid, replace(each.state, is_active=False))


def test_rounds_compare_many_servers_in_steps(parent: Parent) -> None:
    parent.repairer = Repairer(compared_max=1)
    for child_id in range(1, CHILDREN + 1):
        parent.add(child_id, 2, ZoneServerState.BUILT)
    for child in parent.children:
        child.answers = has_all
    told = []
    for _ in range(CHILDREN + 1):
        parent.repair()
        told.append([asked_for(child) for child in parent.children])
    assert told == [[1, 0], [1, 1], [2, 1]]


def test_children_are_told_together_to_undo_servers(parent: Parent) -> None:
    """Each child answers only once both were asked."""
    both = threading.Barrier(CHILDREN)

    def waits(asked: SeenRequest) -> Raw | None:
        if asked.path == "/zones/undo":
            both.wait(SOON_S)
        return None

    for child in parent.children:
        child.answers = waits
    unwanted = [
        uuid
        for child_id in range(1, CHILDREN + 1)
        for uuid in parent.add(child_id, 1, ZoneServerState.UNDOING)
    ]
    gone = parent.carry_out(lambda _, booter: booter.undo(unwanted))
    assert sorted(gone) == sorted(unwanted)


def test_an_audit_asks_all_children_at_the_same_time(parent: Parent) -> None:
    """The first request to each child is answered only once both were asked."""
    both = threading.Barrier(CHILDREN)
    parent.add(1, 1, ZoneServerState.BUILT)
    for child in parent.children:
        child.asked.clear()
        child.answers = has_all_or_lists_none
        child.begin = partial(_meet, child, both)
    service = parent.zone.service
    assert zone_audit(service.settings, service.database).look() == []


def has_all_or_lists_none(asked: SeenRequest) -> Raw | None:
    """Answer questions as :func:`has_all` does, and list no servers."""
    is_list = (asked.method, asked.path) == ("GET", HELD)
    return http({"servers": []}) if is_list else has_all(asked)


def _meet(child: HostileZone, both: threading.Barrier, _: SeenRequest) -> None:
    if len(child.asked) == 1:
        both.wait(SOON_S)
