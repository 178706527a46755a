"""Resizes in a child zone whose answers are late or lost, while repairs compare the server."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from innkeeper.engine.zones.known_children import KNOWN_FOR_S
from innkeeper.engine.zones.repairing import Repairer
from innkeeper.wiring import DATABASE_FILE
from innkeeper.wiring import now as real_now
from tests.support.hostile_zones import Raw, SeenRequest, http
from tests.support.zone_families import USER, Family, family_in
from tests.support.zone_processes import SOON_S
from tests.support.zone_repairs import carry_out

pytestmark = pytest.mark.timeout(300)

FLAVORS = {"big": 10, "huge": 20}
LATE = timedelta(minutes=5)
"""After this time, a request of a zone has certainly expired."""
ACCEPTED, CONFLICT = httpx.codes.ACCEPTED, httpx.codes.CONFLICT
AWAY = httpx.codes.SERVICE_UNAVAILABLE
NOBODY = "127.0.0.1:1"
"""An address where nothing listens."""
UNSURE = http({"computeFault": {"code": 503, "message": "no"}}, 503)
REFUSAL = {"conflictingRequest": {"code": 409, "message": "Cannot 'resize' it."}}


@dataclass(slots=True)
class World:
    """A zone, and its child with one server. ``vcpus`` is what the child has for this server.

    ``resize`` answers an action, whose number it gets. If ``is_held``, the child waits for
    ``go_on`` before it tells which servers it has.
    """

    family: Family
    moved: timedelta = timedelta()
    uuid: str = ""
    vcpus: int = 1
    told: list[SeenRequest] = field(default_factory=list)
    resize: Callable[[int], Raw] = lambda number: http(b"", 202)
    is_held: bool = False
    asked: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def answers(self, asked: SeenRequest) -> Raw | None:
        """Answer as the child."""
        if asked.path.endswith("/action"):
            self.told.append(asked)
            return self.resize(len(self.told))
        if asked.path != "/zones/servers":
            return None
        rest = {"project_id": "lab", "user_id": "ann", "batch_id": "r", "is_undecided": False}
        row = {"id": self.uuid, "vcpus": self.vcpus, "memory_mb": 64, **rest}
        if self.is_held:
            self.asked.set()
            assert self.go_on.wait(SOON_S)
        return http({"servers": [row]})

    def act(self, name: str, arguments: Any = None) -> int:
        """Send an action on the server. Return the status of the answer."""
        path = f"/servers/{self.uuid}/action"
        return self.family.ask("POST", path, USER, json={name: arguments}).status_code

    def resized(self, flavor: str) -> int:
        """Resize the server. Return the status of the answer."""
        return self.act("resize", {"flavorRef": flavor})

    def repair(self) -> None:
        """Compare the server with the child."""
        carry_out(self.family.zone, Repairer().work)

    def cores(self) -> int:
        """Return the cores that count for the user's project."""
        limits = self.family.ask("GET", "/limits", USER).json()["limits"]["absolute"]
        return int(limits["totalCoresUsed"])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made: list[World] = []

    def clock() -> datetime:
        return real_now() + (made[0].moved if made else timedelta())

    with family_in(tmp_path, clock=clock) as family:
        family.link("odd")
        for name, vcpus in FLAVORS.items():
            flavor = {"name": name, "id": name, "ram": 64, "vcpus": vcpus, "disk": 1}
            assert family.ask("POST", "/flavors", json={"flavor": flavor}).is_success
        made.append(World(family))
        made[0].uuid = family.boot().json()["server"]["id"]
        family.kids["odd"].answers = made[0].answers
        yield made[0]


def test_a_late_refusal_lowers_nothing_that_another_resize_counts(world: World) -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def resize(number: int) -> Raw:
        if number > 1:
            return http(b"", 202)
        arrived.set()
        assert go_on.wait(SOON_S)
        return http(REFUSAL, 409)

    world.resize = resize
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(world.resized, "big")
        assert arrived.wait(SOON_S)
        second = world.resized("big")
        go_on.set()
        assert (first.result(), second) == (CONFLICT, ACCEPTED)
    assert world.cores() == FLAVORS["big"]


def test_a_repair_leaves_a_row_that_a_resize_changes_meanwhile(world: World) -> None:
    assert world.resized("big") == ACCEPTED
    assert world.act("revertResize") == ACCEPTED
    world.is_held = True
    with ThreadPoolExecutor(1) as pool:
        repair = pool.submit(world.repair)
        assert world.asked.wait(SOON_S)
        assert world.resized("huge") == ACCEPTED
        world.go_on.set()
        repair.result()
    assert world.cores() == FLAVORS["huge"]
    world.repair()
    assert world.cores() == world.vcpus, "the child never began the resize"


@pytest.mark.parametrize("answer", [b"", UNSURE])
@pytest.mark.parametrize("is_begun", [True, False])
def test_a_resize_without_an_answer_counts_while_it_may_begin(
    world: World, answer: bytes, *, is_begun: bool
) -> None:
    world.resize = lambda _: answer
    assert world.resized("big") == AWAY
    world.repair()
    assert world.cores() == FLAVORS["big"]
    assert world.act("revertResize") == AWAY
    if is_begun:
        world.vcpus = FLAVORS["big"]
    world.moved = LATE
    world.repair()
    assert world.cores() == world.vcpus


def test_a_resize_that_was_not_sent_does_not_count(world: World) -> None:
    with closing(sqlite3.connect(world.family.folder / DATABASE_FILE)) as database:
        database.execute("UPDATE child_zones SET api_url = ?", (f"http://{NOBODY}/v2.1",))
        database.commit()
    time.sleep(KNOWN_FOR_S)
    assert world.resized("big") == AWAY
    assert world.cores() == world.vcpus
