"""Learn from pods which volumes they have made for servers.

Always true: a volume is recorded for a project only if the pod says that this project owns it. The
volume must also be attached to a server that the door (the gateway to pods) has created for the
project, or must be left over from such a server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from urllib.parse import quote, urlencode

import msgspec

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodCall, PodSilent
from innkeeper.domain.converters import converter_to
from innkeeper.domain.door import SERVER, VOLUME, Json
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods.checking import AMOUNT
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.marks import OWNER, ids_of, mark_of
from innkeeper.engine.pods.tenants import SERVICES, Tenants, decoded, is_gone
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import boot_volumes, routings
from innkeeper.systems.pods.boot_volumes import ShownVolume

ATTACHED = "os-extended-volumes:volumes_attached"
VOLUMES_MAX = 64
"""The maximum number of volumes of one server that are looked at. A create cannot ask for more
volumes."""
NEWEST = 200
"""To find the volumes of a deleted server, this service looks at this many newest volumes of the
project."""
CLOCKS_APART = timedelta(minutes=5)
"""The maximum time by which the clock of a pod may be behind the clock of this service."""


class _Volume(msgspec.Struct):
    size: AMOUNT
    volume_type: str | None = None


_volume_of = converter_to(_Volume)


class BootVolumes:
    """Looks for the volumes of servers that pods build."""

    def __init__(self, clouds: PodClouds, tenants: Tenants) -> None:
        self._clouds = clouds
        self._tenants = tenants

    async def learn(self, expected: PodRouting, pod: Pod) -> bool:
        """Record the volumes that a pod has made for a server.

        ``expected`` is the open routing of one of these volumes. Return whether the pod makes no
        more volumes for the server. Raises :class:`PodSilent`.
        """
        server_uuid, now = expected.server_uuid or "", self._clouds.clock()

        def is_decided(tx: Tx) -> bool:
            is_open = bool(boot_volumes.open_of(tx, server_uuid))
            create = routings.known(tx, server_uuid, SERVER)
            # As long as the create of the server is open, the servers of these volumes are unknown.
            return is_open and all(each.bottom_id is not None for each in create)

        engine = self._clouds.engine
        if not await engine.read(is_decided):
            await engine.write(lambda tx: routings.touch(tx, expected.id, now))
            return False
        server = await self._ask(await self._tenants.own(pod), SERVER, server_uuid)
        if server is None:
            found = await self._left(expected, pod)
        else:
            found = await self._shown(expected, pod, server)
        is_away = server is None
        is_last = server is None or _is_at_rest(server)

        def record(tx: Tx) -> None:
            boot_volumes.learn(tx, server_uuid, found, now, is_last=is_last)
            if is_away:
                boot_volumes.look_again(tx, server_uuid, now)

        await engine.write(record)
        return is_last

    async def _shown(
        self, expected: PodRouting, pod: Pod, server: Mapping[str, Json]
    ) -> list[ShownVolume]:
        """Return the volumes of a server, without those that this service knows."""
        told = server.get(ATTACHED)
        rows = told if isinstance(told, list) else []
        return await self._unknown(expected, pod, ids_of(rows)[:VOLUMES_MAX])

    async def _unknown(
        self, expected: PodRouting, pod: Pod, uuids: Sequence[str]
    ) -> list[ShownVolume]:
        """Return the volumes with these ids, without those that this service knows."""

        def look(tx: Tx) -> list[str]:
            return [each for each in uuids if not routings.known(tx, each, VOLUME)]

        unknown = await self._clouds.engine.read(look)
        found = await asyncio.gather(*(self._volume(expected, pod, each) for each in unknown))
        return [each for each in found if each is not None]

    async def _left(self, expected: PodRouting, pod: Pod) -> list[ShownVolume]:
        """Return the volumes of a server that was deleted before this service knew its volumes.

        These are volumes of the project that have no mark, are attached to no other server, and are
        not older than the create.
        """
        server_uuid = expected.server_uuid or ""
        number = len(
            await self._clouds.engine.read(lambda tx: boot_volumes.open_of(tx, server_uuid))
        )
        login = await self._tenants.of_project(pod, expected.project_id)
        after = (expected.created_at - CLOCKS_APART).isoformat()
        timeout_s = self._clouds.podding.pod_request_timeout_s
        query = urlencode({"sort": "created_at:desc", "limit": str(NEWEST)})
        call = PodCall(SERVICES[VOLUME], "GET", f"/volumes/detail?{query}", timeout_s)
        answer = await self._clouds.client.send(login, call)
        told = decoded(answer).get("volumes")
        if answer.status != HTTPStatus.OK or not isinstance(told, list):
            raise PodSilent.of_status(answer.status)
        free = [
            each
            for each in told
            if isinstance(each, Mapping)
            and str(each.get("created_at")) >= after
            and _is_free(each, server_uuid)
            and mark_of(each) is None
        ]
        return (await self._unknown(expected, pod, ids_of(free)))[:number]

    async def _volume(self, expected: PodRouting, pod: Pod, uuid: str) -> ShownVolume | None:
        """Return a volume, or ``None`` if it is gone, or belongs to another project."""
        own = await self._tenants.own(pod)
        timeout_s = self._clouds.podding.pod_request_timeout_s
        login = await self._tenants.of_project(pod, expected.project_id)
        session = await self._clouds.client.session(login, timeout_s)
        told = await self._ask(own, VOLUME, uuid)
        if told is None or told.get(OWNER) != session.project_id:
            return None
        try:
            volume = _volume_of(told)
        except msgspec.ValidationError as error:
            raise PodSilent("its answer lacks the size of a volume") from error

        type_uuid = await self._clouds.engine.read(
            lambda tx: routings.type_named(tx, volume.volume_type)
        )
        return ShownVolume(uuid, volume.size, type_uuid)

    async def _ask(self, login: PodLogin, kind: str, uuid: str) -> Mapping[str, Json] | None:
        timeout_s = self._clouds.podding.pod_request_timeout_s
        target = f"/{kind}s/{quote(uuid, safe='')}"
        call = PodCall(SERVICES[kind], "GET", target, timeout_s)
        answer = await self._clouds.client.send(login, call)
        if is_gone(answer):
            return None
        told = decoded(answer).get(kind)
        if answer.status != HTTPStatus.OK or not isinstance(told, Mapping):
            raise PodSilent.of_status(answer.status)
        return told


def _is_free(volume: Mapping[str, Json], server_uuid: str) -> bool:
    """Return whether a volume is attached to no server, or only to the deleted server."""
    told = volume.get("attachments")
    rows = told if isinstance(told, list) else []
    return all(isinstance(each, Mapping) and each.get("server_id") == server_uuid for each in rows)


def _is_at_rest(server: Mapping[str, Json]) -> bool:
    return server.get("status") != "BUILD" and not server.get("OS-EXT-STS:task_state")
