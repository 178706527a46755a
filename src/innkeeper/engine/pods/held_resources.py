"""Read the servers and volumes of all projects from a pod.

Always true: an answer that is not a list of resources with ids is an error. The reading of a list
ends, because each page must begin after the previous page.

A list may lack a resource that exists, because lists can skip rows while other rows are deleted.
Only :meth:`HeldResources.one` proves that a resource does not exist.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import IDENTITY, NoService, PodAnswer, PodCall, PodClient, PodSilent
from innkeeper.domain.door import SERVER, Json, PodResource
from innkeeper.engine.pods.checking import WITH_FLAVORS, amounts_in
from innkeeper.engine.pods.marks import ids_of, mark_of
from innkeeper.engine.pods.shown import IMAGE_METADATA, PROJECTS
from innkeeper.engine.pods.tenants import COMPUTE, SERVICES, decoded, is_gone
from innkeeper.systems.identity.names import could_be_stored

PAGE = 1000
PAGES_MAX = 2000
UUID_CHARS = 36
"""The length of the database columns for ids of servers and volumes."""


@dataclass(slots=True)
class HeldResources:
    """The servers and volumes of one pod.

    ``login`` is this service's login at the pod, as an administrator.
    """

    client: PodClient
    login: PodLogin
    timeout_s: float
    _names: dict[str, str] = field(default_factory=dict)

    async def every(self, kind: str) -> dict[str, PodResource]:
        """Return all resources of a kind, by id. Raises :class:`PodSilent`."""
        found: dict[str, PodResource] = {}
        try:
            await self._learn()
            async for row in self._rows(
                SERVICES[kind], f"/{kind}s/detail?all_tenants=1", f"{kind}s"
            ):
                each = await self._resource(kind, row)
                found[each.uuid] = each
        except NoService:
            # A pod without a Block Storage service has no volumes. Every pod has a Compute API.
            if kind == SERVER:
                raise
        return found

    async def one(self, kind: str, uuid: str) -> PodResource | None:
        """Return a resource, or ``None`` if the pod answers that it does not exist."""
        answer = await self._ask(SERVICES[kind], f"/{kind}s/{quote(uuid, safe='')}")
        if is_gone(answer):
            return None
        row = _successful(answer).get(kind)
        if not isinstance(row, Mapping):
            raise PodSilent(f"its answer has no {kind}")
        return await self._resource(kind, row)

    async def _learn(self) -> None:
        """Read the names of the pod's projects."""
        for row in _list(_successful(await self._ask(IDENTITY, "/projects")), "projects"):
            self._names[_id(row)] = _text(row.get("name")) or _id(row)

    async def _resource(self, kind: str, row: Mapping[str, Json]) -> PodResource:
        # For volumes, the name of this field has the prefix of an extension.
        fields = (value for name, value in row.items() if name.rpartition(":")[2] in PROJECTS)
        project = _text(next(fields, None))
        if project is None:
            raise PodSilent(f"its answer lacks the project of a {kind}")
        attached = row.get("attachments")
        attachments = attached if isinstance(attached, list) else []
        servers = [{"id": _of(each, "server_id")} for each in attachments]
        uuid = _id(row)
        if len(uuid) > UUID_CHARS:
            raise PodSilent(f"the id of a {kind} is not a UUID")
        return PodResource(
            kind,
            uuid,
            await self._name(project),
            _text(mark_of(row)),
            amounts_in(kind, row),
            tuple(ids_of(servers)),
            _text(row.get("volume_type")),
            _text(_of(row.get(IMAGE_METADATA), "image_name")),
        )

    async def _name(self, project_id: str) -> str:
        """Return the name of a project. Ask for the project if the list of projects lacks it."""
        if project_id not in self._names:
            answer = await self._ask(IDENTITY, f"/projects/{quote(project_id, safe='')}")
            told = decoded(answer).get("project") if answer.status == HTTPStatus.OK else None
            self._names[project_id] = _text(_of(told, "name")) or project_id
        return self._names[project_id]

    async def _rows(self, service: str, path: str, key: str) -> AsyncIterator[Mapping[str, Json]]:
        seen: set[str] = set()
        marker = ""
        for _ in range(PAGES_MAX):
            sign = "&" if "?" in path else "?"
            told = _successful(await self._ask(service, f"{path}{sign}limit={PAGE}{marker}"))
            rows = _list(told, key)
            for row in rows:
                yield row
            if not rows or f"{key}_links" not in told:
                return
            last = _id(rows[-1])
            if last in seen:
                break
            seen.add(last)
            marker = f"&marker={quote(last, safe='')}"
        raise PodSilent(f"its list of {key} does not end")

    async def _ask(self, service: str, target: str) -> PodAnswer:
        headers = WITH_FLAVORS if service == COMPUTE else {}
        call = PodCall(service, "GET", target, self.timeout_s, b"", headers)
        answer = await self.client.send(self.login, call)
        if answer.status != HTTPStatus.NOT_ACCEPTABLE:
            return answer
        # A pod with an old release does not know the microversion. Ask it without amounts.
        return await self.client.send(self.login, PodCall(service, "GET", target, self.timeout_s))


def _successful(answer: PodAnswer) -> dict[str, Json]:
    if answer.status != HTTPStatus.OK:
        raise PodSilent.of_status(answer.status)
    return decoded(answer)


def _list(told: Mapping[str, Json], key: str) -> list[Mapping[str, Json]]:
    rows = told.get(key)
    if not isinstance(rows, list) or not all(isinstance(each, Mapping) for each in rows):
        raise PodSilent(f"its answer has no list of {key}")
    return rows


def _of(told: Json, name: str) -> Json:
    """Return a field of an object, or ``None`` if the value is not an object."""
    return told.get(name) if isinstance(told, Mapping) else None


def _id(row: Mapping[str, Json]) -> str:
    uuid = _text(row.get("id"))
    if uuid is None:
        raise PodSilent("its answer has a row without a usable id")
    return uuid


def _text(value: Json) -> str | None:
    """Return the value if it is a text that can be stored, or else ``None``."""
    return value if isinstance(value, str) and could_be_stored(value) else None
