"""Create server groups in pods, and delete groups that are no longer needed.

Always true: in a pod, the name of a group is the group's id at the door (gateway). Only one request
at a time makes a group in a pod. If an earlier request may have made the group, it is first looked
for by its name. No create uses a group that is being deleted in its pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote

import msgspec

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodAnswer, PodCall, PodSilent
from innkeeper.domain.door import Json
from innkeeper.domain.errors import Conflict
from innkeeper.domain.grouping import ServerGroup
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.tenants import COMPUTE, Tenants, decoded, is_gone
from innkeeper.engine.retry import BINDING_ATTEMPTS_MAX, BINDINGS, again
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity.names import could_be_stored
from innkeeper.systems.pods import pod_groups, routings

T = TypeVar("T")
VERSION = {"openstack-api-version": "compute 2.64"}
"""Since this microversion, a group has one policy and may have rules."""
PAUSE_S = 0.1
GROUPS_MAX = 1000


class GroupProvisioning:
    """Creates and deletes server groups in pods."""

    def __init__(self, clouds: PodClouds, tenants: Tenants) -> None:
        self._clouds = clouds
        self._tenants = tenants

    async def group(
        self, pod: Pod, login: PodLogin, group: ServerGroup, *, is_sure: bool = True
    ) -> str:
        """Return the id of a group in a pod. Make the group if the pod lacks it.

        With ``is_sure``, the pod is not asked for a group with a recorded id.

        Raises :class:`Conflict` if the pod refuses the group, and :class:`PodSilent`.
        """
        timeout_s = self._clouds.podding.pod_request_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                routing, is_ours = await self._begin(pod, group)
                if not is_sure and routing.bottom_id and await self._is_lost(routing, login):
                    routing, is_ours = await self._begin_again(routing, pod, group)
                while routing.bottom_id is None and not is_ours:
                    # Another request is making or removing the group.
                    await asyncio.sleep(PAUSE_S)
                    routing, is_ours = await self._begin(pod, group)
                return routing.bottom_id or await self._make(routing, login, group)
        except TimeoutError as error:
            raise PodSilent("the server group was not created in time") from error

    async def _begin(self, pod: Pod, group: ServerGroup) -> tuple[PodRouting, bool]:
        now = self._clouds.clock()
        stale = now - timedelta(seconds=2 * self._clouds.podding.pod_request_timeout_s)

        def work(tx: Tx) -> tuple[PodRouting, bool]:
            return pod_groups.begin(tx, group.uuid, group.project_id, pod.id, now=now, stale=stale)

        return await self._write(work)

    async def _begin_again(
        self, lost: PodRouting, pod: Pod, group: ServerGroup
    ) -> tuple[PodRouting, bool]:
        """Begin to make a group that the pod has lost, unless another request has begun."""
        now = self._clouds.clock()
        begun = await self._write(lambda tx: pod_groups.lose(tx, lost, now))
        return await self._begin(pod, group) if begun is None else (begun, True)

    async def _is_lost(self, routing: PodRouting, login: PodLogin) -> bool:
        answer = await self._ask(login, "GET", _path(routing.bottom_id or ""))
        if answer.status != HTTPStatus.OK and not is_gone(answer):
            raise PodSilent.of_status(answer.status)
        return answer.status != HTTPStatus.OK

    async def _write(self, work: Callable[[Tx], T]) -> T:
        return await again(lambda: self._clouds.engine.write(work), BINDINGS, BINDING_ATTEMPTS_MAX)

    async def _make(self, routing: PodRouting, login: PodLogin, group: ServerGroup) -> str:
        is_new = routing.created_at == routing.updated_at
        uuid = None if is_new else await self._named(login, group.uuid)
        if uuid is None:
            wanted: dict[str, Json] = {"name": group.uuid, "policy": group.policy}
            if group.servers_per_host_max is not None:
                wanted["rules"] = {"max_server_per_host": group.servers_per_host_max}
            made = await self._ask(login, "POST", "/os-server-groups", {"server_group": wanted})
            is_refused = HTTPStatus.BAD_REQUEST <= made.status < HTTPStatus.INTERNAL_SERVER_ERROR
            if made.status != HTTPStatus.OK and not is_refused:
                raise PodSilent.of_status(made.status, may_have_arrived=True)
            if is_refused:
                await self._clouds.engine.write(lambda tx: routings.forget(tx, routing.id))
                raise Conflict(
                    "The server group cannot be created in the cloud that would run the server."
                )
            uuid = _id_of(decoded(made).get("server_group"))
        if uuid is None:
            raise PodSilent("its server group has no usable id", may_have_arrived=True)
        found, now = uuid, self._clouds.clock()
        await self._clouds.engine.write(lambda tx: pod_groups.confirm(tx, routing.id, found, now))
        return found

    async def _named(self, login: PodLogin, name: str) -> str | None:
        answer = await self._ask(login, "GET", f"/os-server-groups?limit={GROUPS_MAX}")
        rows = decoded(answer).get("server_groups")
        if answer.status != HTTPStatus.OK or not isinstance(rows, list):
            raise PodSilent.of_status(answer.status)
        named = [each for each in rows if isinstance(each, dict) and each.get("name") == name]
        return _id_of(named[0]) if named else None

    async def remove(self, routing: PodRouting, pod: Pod) -> bool:
        """Delete a group in a pod, and forget its routing.

        Return false if the group has been used since the routing was read. Raises
        :class:`PodSilent`.
        """
        login, now = await self._tenants.of_project(pod, routing.project_id), self._clouds.clock()
        begun = await self._write(lambda tx: pod_groups.begin_removal(tx, routing, now))
        if begun is None:
            return False
        try:
            # A create makes an incomplete group itself, but only after twice this time.
            async with asyncio.timeout(self._clouds.podding.pod_request_timeout_s):
                await self._delete(routing, login)
        except TimeoutError as error:
            raise PodSilent("the server group was not deleted in time") from error
        await self._clouds.engine.write(lambda tx: pod_groups.end_removal(tx, begun))
        return True

    async def _delete(self, routing: PodRouting, login: PodLogin) -> None:
        uuid = routing.bottom_id or await self._named(login, routing.top_id)
        if uuid is not None:
            answer = await self._ask(login, "DELETE", _path(uuid))
            if answer.status != HTTPStatus.NO_CONTENT and not is_gone(answer):
                raise PodSilent.of_status(answer.status)

    async def _ask(self, login: PodLogin, method: str, target: str, body: Json = None) -> PodAnswer:
        raw = b"" if body is None else msgspec.json.encode(body)
        timeout_s = self._clouds.podding.pod_request_timeout_s
        return await self._clouds.client.send(
            login, PodCall(COMPUTE, method, target, timeout_s, raw, VERSION)
        )


def _path(uuid: str) -> str:
    return f"/os-server-groups/{quote(uuid, safe='')}"


def _id_of(told: Json) -> str | None:
    uuid = told.get("id") if isinstance(told, dict) else None
    return uuid if isinstance(uuid, str) and could_be_stored(uuid) else None
