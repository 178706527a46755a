"""Find the resources that the door has begun to make in a pod.

The door (gateway to pods) stores a mark in the metadata of each resource that it makes.

Always true: for a create, only resources with its mark are found. A volume that is transferred to
another project is found once it belongs to that project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodCall, PodSilent
from innkeeper.domain.door import MARK, TAKES, VOLUME, Json
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.pods import PodRouting
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.tenants import SERVICES, decoded, is_gone

PAGES_MAX = 50
OWNER = "os-vol-tenant-attr:tenant_id"


class Marks:
    """Looks for marks in pods."""

    def __init__(self, clouds: PodClouds) -> None:
        self._clouds = clouds

    async def found(self, login: PodLogin, begun: PodRouting) -> list[str]:
        """Return the ids of the resources that a create has made. Raises :class:`PodSilent`."""
        if begun.top_id.startswith(TAKES):
            return await self._taken(login, begun)
        service, kind = SERVICES[begun.resource_type], f"{begun.resource_type}s"
        found: list[str] = []
        marker = ""
        for _ in range(PAGES_MAX):
            target = f"/{kind}/detail?limit=200{marker}"
            timeout_s = self._clouds.podding.pod_request_timeout_s
            answer = await self._clouds.client.send(
                login, PodCall(service, "GET", target, timeout_s)
            )
            rows = decoded(answer).get(kind)
            if answer.status != HTTPStatus.OK or not isinstance(rows, list):
                raise PodSilent.of_status(answer.status)
            found += ids_of(rows, begun.top_id)
            last = ids_of(rows[-1:])
            if not last or f"{kind}_links" not in decoded(answer):
                return found
            marker = f"&marker={last[0]}"
        raise PodSilent("the project has too many resources to look for one")

    async def _taken(self, login: PodLogin, begun: PodRouting) -> list[str]:
        """Return the id of a volume that a project takes over, if the project has it already."""
        uuid = begun.top_id.removeprefix(TAKES)
        timeout_s = self._clouds.podding.pod_request_timeout_s
        session = await self._clouds.client.session(login, timeout_s)
        call = PodCall(SERVICES[VOLUME], "GET", f"/volumes/{uuid}", timeout_s)
        answer = await self._clouds.client.send(login, call)
        if is_gone(answer):
            return []
        told = decoded(answer).get("volume")
        if answer.status != HTTPStatus.OK or not isinstance(told, Mapping):
            raise PodSilent.of_status(answer.status)
        # Some logins also see volumes of other projects. If the owner is another project, the
        # volume was not taken over yet.
        return [uuid] if told.get(OWNER) == session.project_id else []


def ids_of(rows: Sequence[Json], mark: str | None = None) -> list[str]:
    """Return the ids of resources. With a ``mark``, skip the resources that lack it."""
    found = []
    for each in rows:
        if not isinstance(each, Mapping):
            continue
        uuid = each.get("id")
        if not isinstance(uuid, str) or canonical_uuid(uuid) != uuid:
            continue
        if mark is None or mark_of(each) == mark:
            found.append(uuid)
    return found


def mark_of(resource: Mapping[str, Json]) -> Json:
    """Return the mark of a resource that a pod has shown, or ``None`` if it has no mark."""
    metadata = resource.get("metadata")
    return metadata.get(MARK) if isinstance(metadata, Mapping) else None
