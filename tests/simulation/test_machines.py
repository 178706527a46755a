"""Servers are moved by agents that are slow, fail, and report late.

At every moment, a server on a host is accounted for there, so its capacity is not given away.
In the end each server is where the service says, and has no remains anywhere else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from innkeeper.domain.compute import Status
from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.systems.compute.moves import completion, migrations, resizing, shelving
from tests.support.clouds import AGENT, UNLIMITED, reported
from tests.support.machines import Machines
from tests.support.moves import OTHER, TIMEOUT_S, Movers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]
HOSTS = ("a1", "a2", "b1", "b2")
SERVERS_MAX = 2
STEPS = 250
CARRIED = ("big", "small", "cold", "confirm", "revert", "delete")
SENT = ("live", "live", "live", "abort", "confirm", "delete", "active", "error")
LOST = ("live", "big", "confirm", "revert", "evacuate", "evacuate", "error", "delete")
SHELVED = ("shelve", "keep", "offload", "unshelve", "unshelve", "cold", "confirm")


class Story:
    """One cloud, and a random sequence of actions on it."""

    def __init__(self, folder: Path, seed: int, actions: tuple[str, ...]) -> None:
        self.dice = Random(seed)  # noqa: S311 - not a secret
        is_same_allowed = bool(seed % 2)
        computing = msgspec.structs.replace(UNLIMITED, allow_resize_to_same_host=is_same_allowed)
        reports = [reported(name, vcpus=64, memory_mb=65536, disk_gb=6400) for name in HOSTS]
        self.movers = Movers(folder, *reports, computing=computing)
        self.machines = Machines(self.movers, self.dice)
        self.actions = actions
        self.servers: list[ServerId] = []
        # If a server's host is down, deleting the server frees the host at once.
        self.deleted: set[tuple[str | None, ServerId]] = set()

    def tell(self) -> None:
        """Run the sequence, and check the invariants after every step."""
        steps = (self.act, self.take, self.machines.go_on, self.machines.tell, self.wait)
        for step in self.dice.choices(steps, (15, 20, 35, 25, 5), k=STEPS):
            step()
            assert list(self.machines.uncovered(self.deleted)) == []
        for _ in range(10):
            self.machines.finish()
            self.movers.wait()
            self.movers.sweep()
        self.movers.judge()
        for host, uuid in self.machines.there:
            is_its_own = self.movers.server(uuid).host == host
            assert is_its_own or self.may_go_back(host, uuid), (host, self.movers.state(uuid))
        for uuid in self.servers:
            server = self.movers.server(uuid)
            may_be_nowhere = server.status in (Status.ERROR, Status.SHELVED_OFFLOADED)
            if server.host is not None and not may_be_nowhere:
                assert (server.host, uuid) in self.machines.there, self.movers.state(uuid)

    def may_go_back(self, host: str, uuid: ServerId) -> bool:
        """Whether a resize waits to be confirmed or reverted, and the source keeps the server."""
        is_there = self.movers.server(uuid).status == Status.VERIFY_RESIZE
        return is_there and self.movers.migration(uuid).source_host == host

    def take(self) -> None:
        """One of the agents polls for work."""
        self.machines.take(self.dice.choice((AGENT, OTHER)).id)

    def wait(self) -> None:
        """Time passes: hosts go down, or orders are late."""
        silent = self.dice.choice(("", "a", "b"))
        self.movers.wait(self.dice.choice((120.0, TIMEOUT_S + 1)), silent=silent)
        self.movers.sweep()

    def act(self) -> None:
        """A user requests an action, which may be rejected."""
        if len(self.servers) < SERVERS_MAX:
            self.movers.wait(1)
            self.servers.append(self.machines.boot(self.dice.choice(HOSTS)))
            return
        uuid, action = self.dice.choice(self.servers), self.dice.choice(self.actions)
        if action == "delete":
            self.deleted.add((self.movers.server(uuid).host, uuid))
            self.servers.remove(uuid)
        with contextlib.suppress(Refusal):
            self.ways(uuid)[action]()
        self.movers.judge()

    def ways(self, uuid: ServerId) -> dict[str, Callable[[], Any]]:
        """The actions that are possible for a server."""
        movers = self.movers
        return {
            "big": lambda: movers.resize(uuid, "big"),
            "small": lambda: movers.resize(uuid, "small"),
            "cold": lambda: movers.migrate(uuid),
            "live": lambda: movers.migrate_live(uuid),
            "evacuate": lambda: movers.evacuate(uuid),
            "confirm": lambda: movers.act(resizing.confirm, uuid),
            "revert": lambda: movers.act(resizing.revert, uuid),
            "shelve": lambda: movers.act(shelving.shelve, uuid, offload_time_s=0),
            "keep": lambda: movers.act(shelving.shelve, uuid, offload_time_s=-1),
            "offload": lambda: movers.act(shelving.offload, uuid),
            "unshelve": lambda: movers.unshelve(uuid),
            "active": lambda: movers.act(completion.reset_state, uuid, status="ACTIVE"),
            "error": lambda: movers.act(completion.reset_state, uuid, status="ERROR"),
            "delete": lambda: movers.delete(uuid),
            "abort": lambda: self.abort(uuid),
        }

    def abort(self, uuid: ServerId) -> None:
        """Abort a live migration."""
        under_way = self.movers.cloud.read(lambda tx: migrations.in_progress(tx, uuid))
        for each in under_way:
            self.movers.act(migrations.abort, uuid, each.id, in_queue=True)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("actions", [CARRIED, SENT, LOST, SHELVED])
def test_servers_hold_allocations_on_their_hosts(
    tmp_path: Path, actions: tuple[str, ...], seed: int
) -> None:
    story = Story(tmp_path, seed, actions)
    story.tell()
    story.movers.close()
