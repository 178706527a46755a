"""The clients of simulated doors, and their administrator, who moves them between pods."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.pod_doors.processes import SimulatedDoor, SimulatedPod
from tests.simulation.stepping.services import Dice

COMPUTE, VOLUME, PODS = "/compute/v2.1", "/volume/v3", "/pods/v1.0"
TRANSFERS = f"{VOLUME}/os-volume-transfer"
FLAVORS: Mapping[str, Mapping[str, Any]] = {
    "g": {"id": "g", "name": "g", "vcpus": 2, "ram": 512, "disk": 1},
    "h": {"id": "h", "name": "h", "vcpus": 3, "ram": 768, "disk": 1},
    "cad": {"id": "cad", "name": "cad", "vcpus": 4, "ram": 1024, "disk": 1},
}
ROOT: Mapping[str, Any] = {"source_type": "blank", "destination_type": "local", "boot_index": 0}
NEW: Mapping[str, Any] = {"source_type": "blank", "destination_type": "volume", "boot_index": -1}
CAD: Mapping[str, str] = {"resource": "CAD"}
TYPES = ("std", "cad")
PROJECTS = ("acme", "bolt")
COUNT_MAX, SIZE_MAX = 3, 3
SERVER, VOLUME_KIND = "server", "volume"
PATIENCE_S = 200.0
OFFERED_S = 20.0
"""The longest time until the other project takes over an offered volume."""
VOLUMES_SHARE, GROUPS_SHARE = 0.25, 0.3
"""The share of boots that ask for a new volume, and of those that ask for a place in a group."""
NEAR_SHARE, ENDS_SHARE = 0.8, 0.3
"""The share of attachments in one project, and of those that delete the volume with the server."""
KINDS = {
    "boot": 8,
    "store": 4,
    "delete": 5,
    "attach": 4,
    "detach": 2,
    "resize": 3,
    "end_resize": 3,
    "extend": 2,
    "transfer": 3,
    "list": 2,
    "bind": 2,
    "end": 1,
    "maintain": 2,
    "vanish": 1,
}
"""What clients and the administrator do, with relative frequencies."""
OK, ACCEPTED, NO_CONTENT = 200, 202, 204
BAD, FORBIDDEN, MISSING, CONFLICT, OVER_LIMIT, AWAY = 400, 403, 404, 409, 413, 503


@dataclass(slots=True)
class Create:
    """One request for servers or a volume, and what its client was told.

    ``status`` is ``None`` if the client got no answer. ``told`` are the ids of the answer.
    """

    name: str
    kind: str
    project: str
    least: int
    most: int
    status: int | None = None
    told: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    """The ids that somebody asked to delete."""
    gone: set[str] = field(default_factory=set)
    """The ids whose deletion a pod accepted."""
    grown: bool = False
    """Whether somebody asked to extend the volume. Nobody deletes it then."""
    takers: set[str] = field(default_factory=set)
    """The projects that asked to take over the volume. It may belong to any of them."""

    @property
    def owners(self) -> set[str]:
        """The projects that may have what was made."""
        return {self.project, *self.takers}


@dataclass(slots=True)
class Clients:
    """All clients of doors on one database, and the administrator of doors and pods.

    ``groups`` are the server groups of each project.
    """

    doors: Sequence[SimulatedDoor]
    pods: Mapping[str, SimulatedPod]
    ids: Mapping[str, str]
    zones: Mapping[str, str]
    dice: Dice
    creates: list[Create] = field(default_factory=list)
    answers: list[tuple[str, int | None]] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    attached: list[tuple[Create, str, str]] = field(default_factory=list)
    """Servers with their creates, each with a volume that was attached to it at some time."""
    faults: list[str] = field(default_factory=list)
    """Answers that no client may get."""

    async def work(self, requests: int, within_s: float) -> None:
        """Send requests at random times, some of them at once."""
        moments = sorted(self.dice.uniform(0, within_s) for _ in range(requests))
        await asyncio.gather(*(self._at(moment) for moment in moments))

    async def _at(self, moment: float) -> None:
        await asyncio.sleep(moment)
        (kind,) = self.dice.choices(list(KINDS), list(KINDS.values()))
        status = await {
            "boot": self._boot,
            "store": self._store,
            "delete": self._delete,
            "attach": self._attach,
            "detach": self._detach,
            "resize": self._resize,
            "end_resize": self._end_resize,
            "extend": self._extend,
            "transfer": self._transfer,
            "list": self._list,
            "bind": self._bind,
            "end": self._end,
            "maintain": self._maintain,
            "vanish": self._vanish,
        }[kind]()
        self.answers.append((kind, status))

    async def _boot(self) -> int | None:
        most = self.dice.choice([1, 1, 1, self.dice.randint(2, COUNT_MAX)])
        flavor = self.dice.choice(["g", "g", "cad"])
        least = self.dice.choice([1, most])
        fields: dict[str, Any] = {
            "flavorRef": flavor,
            "imageRef": "",
            "networks": "none",
            "max_count": most,
            "min_count": least,
        }
        project = self.dice.choice(PROJECTS)
        if self.dice.random() < VOLUMES_SHARE:
            ends = self.dice.choice([True, False])
            size = self.dice.randint(1, SIZE_MAX)
            new = {**NEW, "volume_size": size, "delete_on_termination": ends}
            fields["block_device_mapping_v2"] = [dict(ROOT), new]
        hints: dict[str, Any] = {}
        if self.dice.random() < GROUPS_SHARE:
            hints = {"os:scheduler_hints": {"group": self.dice.choice(self.groups[project])}}
        create = self._create(SERVER, project, least, most)
        return await self._make(create, f"{COMPUTE}/servers", fields, hints)

    async def _store(self) -> int | None:
        size = self.dice.randint(1, SIZE_MAX)
        fields = {"size": size, "volume_type": self.dice.choice(TYPES)}
        create = self._create(VOLUME_KIND, self.dice.choice(PROJECTS), 1, 1)
        return await self._make(create, f"{VOLUME}/volumes", fields, {})

    def _create(self, kind: str, project: str, least: int, most: int) -> Create:
        create = Create(f"create{len(self.creates)}", kind, project, least, most)
        self.creates.append(create)
        return create

    async def _make(
        self, create: Create, path: str, fields: dict[str, Any], hints: dict[str, Any]
    ) -> int | None:
        kind = create.kind
        is_cad = "cad" in fields.values()
        zone = None if is_cad else self.dice.choice([None, None, *sorted(set(self.zones.values()))])
        wanted = fields if zone is None else {**fields, "availability_zone": zone}
        body = {kind: {"name": create.name, **wanted}, **hints}
        told = await self._ask("POST", path, body, create.project)
        if told is None:
            return None
        create.status, body = told
        if create.status == ACCEPTED:
            create.told = {body[kind]["id"]}
        elif create.status == BAD and hints and zone is not None:
            # The group may be in another zone.
            pass
        elif create.status not in (FORBIDDEN, CONFLICT, OVER_LIMIT, AWAY):
            self.faults.append(f"{create.name} was answered with {told}")
        return create.status

    def _known(self, kind: str | None = None) -> list[tuple[Create, str]]:
        return [
            (create, uuid)
            for create in self.creates
            for uuid in sorted(create.told - create.deleted)
            if kind in (None, create.kind)
        ]

    async def _delete(self) -> int | None:
        known = [each for each in self._known() if not each[0].grown]
        if not known:
            return None
        create, uuid = self.dice.choice(known)
        create.deleted.add(uuid)
        place = f"{COMPUTE}/servers" if create.kind == SERVER else f"{VOLUME}/volumes"
        told = await self._ask("DELETE", f"{place}/{uuid}", None, create.project)
        if told is None:
            return None
        if told[0] in (ACCEPTED, NO_CONTENT):
            create.gone.add(uuid)
        elif told[0] not in (BAD, MISSING, CONFLICT, AWAY):
            self.faults.append(f"the deletion of {uuid} was answered with {told}")
        return told[0]

    async def _attach(self) -> int | None:
        servers, volumes = self._known(SERVER), self._known(VOLUME_KIND)
        if not servers or not volumes:
            return None
        at, server = self.dice.choice(servers)
        near = [each for each in volumes if each[0].project == at.project]
        of, volume = self.dice.choice(near if near and self.dice.random() < NEAR_SHARE else volumes)
        places = await self._pod_of(server), await self._pod_of(volume)
        ends = self.dice.random() < ENDS_SHARE
        if ends:
            # It may be deleted with the server, even if the answer is lost.
            of.deleted.add(volume)
        self.attached.append((at, server, volume))
        body = {"volumeAttachment": {"volumeId": volume, "delete_on_termination": ends}}
        path = f"{COMPUTE}/servers/{server}/os-volume_attachments"
        told = await self._ask("POST", path, body, at.project)
        if told is None:
            return None
        can_meet = at.project in of.owners and (None in places or places[0] == places[1])
        if told[0] == OK and not can_meet:
            self.faults.append(f"the volume {volume} in {places[1]} was attached in {places[0]}")
        if told[0] not in (OK, BAD, MISSING, CONFLICT, AWAY):
            self.faults.append(f"the attachment of {volume} was answered with {told}")
        return told[0]

    async def _detach(self) -> int | None:
        if not self.attached:
            return None
        at, server, volume = self.dice.choice(self.attached)
        path = f"{COMPUTE}/servers/{server}/os-volume_attachments/{volume}"
        told = await self._ask("DELETE", path, None, at.project)
        allowed = (ACCEPTED, BAD, MISSING, CONFLICT, AWAY)
        return self._judged(told, allowed, f"the detachment of {volume}")

    async def _resize(self) -> int | None:
        flavor = self.dice.choice(["g", "h"])
        return await self._act({"resize": {"flavorRef": flavor}})

    async def _end_resize(self) -> int | None:
        return await self._act({self.dice.choice(["confirmResize", "revertResize"]): None})

    async def _act(self, action: dict[str, Any]) -> int | None:
        if not (known := self._known(SERVER)):
            return None
        create, uuid = self.dice.choice(known)
        told = await self._ask("POST", f"{COMPUTE}/servers/{uuid}/action", action, create.project)
        allowed = (ACCEPTED, NO_CONTENT, BAD, MISSING, CONFLICT, AWAY)
        return self._judged(told, allowed, f"{action} for {uuid}")

    async def end_resizes(self, uuids: Iterable[str]) -> None:
        """Confirm the resizes of servers that nobody else will confirm."""
        for uuid in uuids:
            path = f"{COMPUTE}/servers/{uuid}/action"
            await self._ask("POST", path, {"confirmResize": None})

    async def _extend(self) -> int | None:
        if not (known := self._known(VOLUME_KIND)):
            return None
        create, uuid = self.dice.choice(known)
        create.grown = True
        body = {"os-extend": {"new_size": self.dice.randint(SIZE_MAX, 3 * SIZE_MAX)}}
        path = f"{VOLUME}/volumes/{uuid}/action"
        told = await self._ask("POST", path, body, create.project)
        allowed = (ACCEPTED, BAD, MISSING, CONFLICT, OVER_LIMIT, AWAY)
        return self._judged(told, allowed, f"the extension of {uuid}")

    async def _transfer(self) -> int | None:
        """Offer a volume to another project, which takes it over after a while."""
        if not (known := self._known(VOLUME_KIND)):
            return None
        create, uuid = self.dice.choice(known)
        giver = self.dice.choice(sorted(create.owners))
        offer = {"transfer": {"volume_id": uuid, "name": "some"}}
        told = await self._ask("POST", TRANSFERS, offer, giver)
        refused = (BAD, MISSING, CONFLICT, OVER_LIMIT, AWAY)
        status = self._judged(told, (ACCEPTED, *refused), f"the offer of {uuid}")
        if told is None or status != ACCEPTED:
            return status
        await asyncio.sleep(self.dice.uniform(0, OFFERED_S))
        (taker,) = set(PROJECTS) - {giver}
        create.takers.add(taker)
        made = told[1]["transfer"]
        path = f"{TRANSFERS}/{made['id']}/accept"
        told = await self._ask("POST", path, {"accept": {"auth_key": made["auth_key"]}}, taker)
        return self._judged(told, (ACCEPTED, *refused), f"the acceptance of {uuid}")

    def _judged(
        self, told: tuple[int, Any] | None, allowed: Collection[int], what: str
    ) -> int | None:
        """Return the status of an answer. A status that is not allowed is recorded as a fault."""
        if told is None:
            return None
        if told[0] not in allowed:
            self.faults.append(f"{what} was answered with {told}")
        return told[0]

    async def _pod_of(self, uuid: str) -> str | None:
        told = await self._ask("GET", f"{PODS}/routings?top_id={uuid}", None)
        found = told[1]["routings"] if told is not None and told[0] == OK else []
        return found[0]["pod_id"] if found else None

    async def _list(self) -> int | None:
        place = self.dice.choice([f"{COMPUTE}/servers/detail", f"{VOLUME}/volumes/detail"])
        told = await self._ask("GET", place, None, self.dice.choice(PROJECTS))
        if told is not None and told[0] not in (OK, AWAY):
            self.faults.append(f"a list was answered with {told}")
        return None if told is None else told[0]

    async def _bind(self) -> int | None:
        project, pod = self.dice.choice(PROJECTS), self.dice.choice(sorted(self.ids))
        body = {"pod_binding": {"project_id": project, "pod_id": self.ids[pod]}}
        told = await self._ask("POST", f"{PODS}/bindings", body)
        return None if told is None else told[0]

    async def _end(self) -> int | None:
        told = await self._ask("GET", f"{PODS}/bindings?is_binding=true", None)
        found = told[1]["pod_bindings"] if told is not None and told[0] == OK else []
        if not found:
            return None
        uuid = self.dice.choice(found)["id"]
        told = await self._ask("DELETE", f"{PODS}/bindings/{uuid}", None)
        return None if told is None else told[0]

    async def _maintain(self) -> int | None:
        pod = self.dice.choice(sorted(self.ids))
        body = {"pod": {"maintenance": self.dice.random() < 0.3}}
        told = await self._ask("PUT", f"{PODS}/pods/{self.ids[pod]}", body)
        return None if told is None else told[0]

    async def _vanish(self) -> int | None:
        """Delete a server in its pod, behind the door's back."""
        if not (known := self._known(SERVER)):
            return None
        create, uuid = self.dice.choice(known)
        create.deleted.add(uuid)
        for pod in self.pods.values():
            try:
                await pod.ask("DELETE", f"{COMPUTE}/servers/{uuid}")
            except ConnectionError:
                continue
        return None

    async def _ask(
        self, method: str, path: str, body: Any, project: str | None = None
    ) -> tuple[int, Any] | None:
        """Send a request to the door; returns ``None`` without an answer."""
        token = "admin" if project is None else f"user:{project}"
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self.dice.choice(self.doors).ask(method, path, body, token)
        except (ConnectionError, TimeoutError):
            return None
