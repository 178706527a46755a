"""Boots that the zone itself refuses while its child builds a part, and passwords of boots."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from innkeeper.domain.zone_tree import ZoneServer
from innkeeper.engine.zones.booting import TreeBooter
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.systems.zones import remote
from tests.support.hostile_zones import Raw, SeenRequest, ids_in
from tests.support.zone_families import Family, family_in, select
from tests.support.zone_repairs import carry_out

pytestmark = pytest.mark.timeout(300)

CHEAP = -1e6
PLANNED_S = 1.0
"""The zone's own part of a plan takes less time than this."""
BUILT_S = 0.5
"""The child builds for so long. The zone itself refuses earlier."""
FORBIDDEN, INVALID = httpx.codes.FORBIDDEN, httpx.codes.BAD_REQUEST
PASSWORD = "a-password-for-the-console"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Family]:
    with family_in(tmp_path) as made:
        made.link("odd")
        yield made


def allow(world: Family, instances: int) -> None:
    """Set the quota of servers of the user's project."""
    quota = {"quota_set": {"instances": instances}}
    assert world.ask("PUT", "/os-quota-sets/lab", json=quota).is_success


def lose_flavor(world: Family) -> None:
    """Delete the flavor that the boot names."""
    assert world.ask("DELETE", "/flavors/v1").is_success


def rows_of(world: Family, uuids: list[str]) -> list[ZoneServer]:
    """Return the zone's records of servers in its child."""

    async def read(tree: ZoneTree, _: TreeBooter) -> list[ZoneServer]:
        return await tree.parts.engine.read(lambda tx: remote.by_uuids(tx, uuids))

    return carry_out(world.zone, read)


@pytest.mark.parametrize(
    ("spoil", "status"),
    [(lambda world: allow(world, 1), FORBIDDEN), (lose_flavor, INVALID)],
    ids=["quota", "flavor"],
)
def test_a_refused_boot_leaves_no_server_in_the_child(
    world: Family, spoil: Callable[[Family], None], status: int
) -> None:
    world.add_host()
    allow(world, 2)
    built: list[str] = []
    undone: list[str] = []

    def answers(asked: SeenRequest) -> Raw | None:
        if asked.path == "/zones/select":
            time.sleep(PLANNED_S)
            spoil(world)
        if (asked.method, asked.path) == ("POST", "/servers"):
            time.sleep(BUILT_S)
            built.extend(ids_in(asked.body))
        if asked.path == "/zones/undo":
            undone.extend(asked.body["servers"])
        return select(asked, CHEAP, 1)

    world.kids["odd"].answers = answers
    refused = world.boot(2, min_count=1)
    assert refused.status_code == status, refused.text
    assert (len(built), undone) == (1, built)
    assert rows_of(world, built) == []
    assert world.used() == 0


@pytest.mark.parametrize("is_planned", [True, False])
def test_no_child_gets_the_password_of_a_boot(world: Family, *, is_planned: bool) -> None:
    if is_planned:
        world.link("even", 2)
    for kid in world.kids.values():
        kid.answers = lambda asked: select(asked, CHEAP)
    answer = world.boot(adminPass=PASSWORD)
    assert answer.json()["server"]["adminPass"] == PASSWORD
    told = {name: [each.body for each in kid.asked] for name, kid in world.kids.items()}
    assert sum(world.created(name) for name in world.kids) == 1
    assert PASSWORD not in json.dumps(told)
