"""The clients of a simulated tree: they boot and delete servers, and remember the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from tests.simulation.stepping.services import Dice
from tests.simulation.zone_trees.processes import SimulatedZone

FLAVOR: Mapping[str, Any] = {"id": "1", "name": "eight", "vcpus": 8, "ram": 8192, "disk": 10}
USER, NEIGHBOUR = "demo:demo", "local:local"
"""A user of the tree, and a user who sends requests directly to a child zone."""
COUNT_MAX = 4
ACCEPTED, DELETED, MISSING = 202, 204, 404
PATIENCE_S = 120.0
KINDS = {"boot": 5, "entry": 2, "local": 1, "delete": 4}
"""What clients do, with relative frequencies."""
OF_BATCH = sa.text(
    "SELECT uuid FROM servers WHERE batch_id = :batch AND deleted_at IS NULL "
    "AND COALESCE(task_state, '') <> 'deleting' "
    "UNION SELECT uuid FROM zone_servers WHERE batch_id = :batch AND state IN ('built', 'building')"
)
"""Servers that a zone may record as built even after its answer. It has undone all others."""


@dataclass(slots=True)
class Create:
    """One request for servers, and what its client was told.

    ``status`` is ``None`` if the client got no answer. ``servers`` are those that were
    acknowledged, and ``deleted`` those that the client asked to delete.
    """

    name: str
    zone: str
    least: int
    most: int
    status: int | None = None
    servers: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    """The servers whose deletion was acknowledged."""


@dataclass(slots=True)
class Clients:
    """All clients of a tree, whose requests come in at ``root``."""

    zones: Mapping[str, SimulatedZone]
    dice: Dice
    root: str
    creates: list[Create] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Answers that no client may get."""

    async def work(self, requests: int, within_s: float) -> None:
        """Send requests at random times, some of them at once."""
        moments = sorted(self.dice.uniform(0, within_s) for _ in range(requests))
        await asyncio.gather(*(self._at(moment) for moment in moments))

    async def _at(self, moment: float) -> None:
        await asyncio.sleep(moment)
        (kind,) = self.dice.choices(list(KINDS), list(KINDS.values()))
        if kind == "boot":
            most = self.dice.randint(1, COUNT_MAX)
            await self._boot(self._create(self.root, self.dice.randint(1, most), most), USER)
        elif kind == "local":
            child = self.dice.choice([each for each in sorted(self.zones) if each != self.root])
            await self._boot(self._create(child, 1, 1), NEIGHBOUR)
        elif kind == "entry":
            await self._boot_entry()
        else:
            await self._delete()

    def _create(self, zone: str, least: int, most: int) -> Create:
        made = Create(f"create{len(self.creates)}", zone, least, most)
        self.creates.append(made)
        return made

    async def _boot(self, create: Create, token: str) -> None:
        counts = {
            "min_count": create.least,
            "max_count": create.most,
            "return_reservation_id": True,
        }
        told = await self._ask(
            create.zone, "POST", "/servers", server(create.name, **counts), token
        )
        if told is None:
            return
        create.status, body = told
        if create.status == ACCEPTED:
            batch = {"batch": body["reservation_id"]}
            found = self.zones[create.zone].process
            if found is None:
                # The zone died after its answer. What it answered is in its database.
                create.status = None
                return
            with found.store.read() as tx:
                create.servers = {str(uuid) for (uuid,) in tx.execute(OF_BATCH, batch)}
            if not create.least <= len(create.servers) <= create.most:
                self.faults.append(f"{create} was acknowledged with these servers")

    async def _boot_entry(self) -> None:
        """Boot a server with an entry of a plan, and present the entry a second time."""
        body = server("plan", max_count=2)
        told = await self._ask(self.root, "POST", "/zones/select", body, USER)
        if told is None or not told[1].get("weights"):
            return
        create = self._create(self.root, 1, 1)
        blob = self.dice.choice(told[1]["weights"])["blob"]
        body = server(create.name, blob=blob)
        again = asyncio.ensure_future(self._later(body)) if self.dice.random() < 0.7 else None
        answers = [await self._ask(self.root, "POST", "/servers", body, USER)]
        if again is not None:
            answers.append(await again)
        made = [each[1]["server"]["id"] for each in answers if each and each[0] == ACCEPTED]
        create.servers = set(made)
        if len(create.servers) > 1 or len(made) > 1:
            self.faults.append(f"{create.name}: an entry made more than one server: {made}")
        if all(each is not None for each in answers):
            create.status = ACCEPTED if made else max(each[0] for each in answers if each)

    async def _later(self, body: Any) -> tuple[int, Any] | None:
        await asyncio.sleep(self.dice.random() ** 2 * 10)
        return await self._ask(self.root, "POST", "/servers", body, USER)

    async def _delete(self) -> None:
        known = [
            (create, uuid)
            for create in self.creates
            if create.zone == self.root
            for uuid in sorted(create.servers - create.deleted)
        ]
        if not known:
            return
        create, uuid = self.dice.choice(known)
        create.deleted.add(uuid)
        told = await self._ask(self.root, "DELETE", f"/servers/{uuid}", None, USER)
        if told is not None and told[0] == DELETED:
            create.gone.add(uuid)
        if told is not None and told[0] == MISSING:
            self.faults.append(f"server {uuid} of {create.name} is unknown, and nobody deleted it")

    async def _ask(
        self, zone: str, method: str, path: str, body: Any, token: str
    ) -> tuple[int, Any] | None:
        """Send a request; returns ``None`` without an answer."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self.zones[zone].compute(method, path, body, token)
        except (ConnectionError, TimeoutError):
            return None


def server(name: str, **more: Any) -> dict[str, Any]:
    """Return a body for servers of the flavor."""
    usual = {"name": name, "flavorRef": FLAVOR["id"], "imageRef": "", "networks": "none"}
    return {"server": {**usual, **more}}
