"""Look in several pods at once for what the door has no routing of, such as attachments.

Always true: a resource is not found only if every pod that may have it says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus

import structlog

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodCall, PodSilent
from innkeeper.domain.door import VOLUME, Json
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.tenants import Tenants, decoded, is_gone
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import pods, routings

LOG = structlog.get_logger("innkeeper.pods")
Told = Mapping[str, Json]


class Looking:
    """Asks several pods the same."""

    def __init__(self, clouds: PodClouds, tenants: Tenants) -> None:
        self._clouds = clouds
        self._tenants = tenants

    async def volumes(self, project_id: str | None) -> dict[str, tuple[PodRouting, Pod]]:
        """Return the volumes of a project, or of all projects, by id, with their pods."""

        def look(tx: Tx) -> dict[str, tuple[PodRouting, Pod]]:
            by_id = {each.id: each for each in pods.every(tx)}
            found = routings.of_project(tx, project_id, VOLUME)
            return {
                each.top_id: (each, by_id[each.pod_id])
                for each in found
                if each.bottom_id is not None
            }

        return await self._clouds.engine.read(look)

    async def every_pod(self) -> list[Pod]:
        """Return all pods."""
        return list(await self._clouds.engine.read(pods.every))

    async def login(self, pod: Pod, project_id: str | None) -> PodLogin:
        """Return the login for a project, or with ``None`` the administrator's."""
        if project_id is None:
            return await self._tenants.own(pod)
        return await self._tenants.of_project(pod, project_id)

    async def ask(
        self,
        asked: Sequence[Pod],
        project_id: str | None,
        service: str,
        target: str,
        headers: Mapping[str, str],
    ) -> tuple[list[tuple[Pod, Told]], list[Pod]]:
        """Return the answers of pods, and the pods without one. A 404 is an answer without keys."""
        timeout_s = self._clouds.podding.pod_request_timeout_s

        async def one(pod: Pod) -> Told:
            if pod.health.is_up is False:
                raise PodSilent("it is down")
            login = await self.login(pod, project_id)
            call = PodCall(service, "GET", target, timeout_s, b"", headers)
            answer = await self._clouds.client.send(login, call)
            if is_gone(answer):
                return {}
            if answer.status != HTTPStatus.OK:
                raise PodSilent(f"it answers with the status {answer.status}")
            return decoded(answer)

        answers = await asyncio.gather(*map(one, asked), return_exceptions=True)
        told: list[tuple[Pod, Told]] = []
        missing: list[Pod] = []
        for pod, answer in zip(asked, answers, strict=True):
            if isinstance(answer, PodSilent):
                LOG.warning("pod_not_asked", pod=pod.pod_name, reason=str(answer))
                missing.append(pod)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                told.append((pod, answer))
        return told, missing
