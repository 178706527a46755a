"""Look in several pods for resources that the door does not record, such as attachments.

Always true: a resource counts as not found only if every pod that may have it has answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import urlencode

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
Row = dict[str, Json]
T = TypeVar("T")
PAGE, PAGES_MAX = 1000, 200
"""The number of rows of a page, and the maximum number of pages that are read from a pod."""


class Lookups:
    """Sends the same request to several pods."""

    def __init__(self, clouds: PodClouds, tenants: Tenants) -> None:
        self._clouds = clouds
        self._tenants = tenants

    async def homes(self, project_id: str | None) -> list[Pod]:
        """Return the pods with volumes of a project, or of all projects for ``None``."""

        def look(tx: Tx) -> list[Pod]:
            ids = frozenset(routings.pods_of(tx, project_id, VOLUME))
            return [each for each in pods.every(tx) if each.id in ids]

        return await self._clouds.engine.read(look)

    async def volumes(self, project_id: str | None, ids: Collection[str]) -> dict[str, PodRouting]:
        """Return the routings of a project's volumes that are among ``ids``, by the volume's id.

        If ``project_id`` is ``None``, the volumes of all projects are returned.
        """
        found = await self._clouds.engine.read(lambda tx: routings.of_resources(tx, ids, VOLUME))
        made = (each for each in found if each.bottom_id is not None)
        return {each.top_id: each for each in made if project_id in (None, each.project_id)}

    async def every_pod(self) -> list[Pod]:
        """Return all pods."""
        return list(await self._clouds.engine.read(pods.every))

    async def login(self, pod: Pod, project_id: str | None) -> PodLogin:
        """Return the login for a project, or the administrator's login for ``None``."""
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
        """Return the answers of pods, and the pods that did not answer.

        A 404 counts as an empty answer.
        """

        async def one(pod: Pod) -> Told:
            return await self._told(pod, project_id, service, target, headers)

        return await self._each(asked, one)

    async def rows(
        self,
        asked: Sequence[Pod],
        project_id: str | None,
        service: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        key: str,
    ) -> tuple[list[tuple[Pod, list[Row]]], list[Pod]]:
        """Read a whole list from each pod. Return the rows, and the pods that did not answer.

        The bodies of answers have the rows under ``key``.
        """
        timeout_s = self._clouds.podding.pod_request_timeout_s

        async def pages(pod: Pod, has_told: asyncio.Event) -> list[Row]:
            found: dict[str, Row] = {}
            words = {**query, "limit": str(PAGE)}
            for _ in range(PAGES_MAX):
                target = f"{path}?{urlencode(words)}"
                told = await self._told(pod, project_id, service, target, headers)
                has_told.set()
                page = _by_id(told.get(key))
                is_last = len(page) < PAGE and f"{key}_links" not in told
                if is_last or found.keys() >= page.keys():
                    return list({**found, **page}.values())
                found |= page
                words["marker"] = list(page)[-1]
            raise PodSilent("the list does not end")

        async def one(pod: Pod) -> list[Row]:
            has_told = asyncio.Event()
            try:
                async with asyncio.timeout(timeout_s):
                    return await pages(pod, has_told)
            except TimeoutError as error:
                # A pod that has sent some pages is not late, even if the list has many pages.
                if not has_told.is_set():
                    self._clouds.note_late(pod)
                raise PodSilent(f"the pod sent no list within {timeout_s:g} seconds") from error

        return await self._each(asked, one)

    async def _told(
        self,
        pod: Pod,
        project_id: str | None,
        service: str,
        target: str,
        headers: Mapping[str, str],
    ) -> Told:
        if not self._clouds.is_awaited(pod):
            raise PodSilent("it is down, or did not answer in time")
        login = await self.login(pod, project_id)
        timeout_s = self._clouds.podding.pod_request_timeout_s
        call = PodCall(service, "GET", target, timeout_s, b"", headers)
        answer = await self._clouds.client.send(login, call)
        if is_gone(answer):
            return {}
        if answer.status != HTTPStatus.OK:
            raise PodSilent.of_status(answer.status)
        return decoded(answer)

    async def _each(
        self, asked: Sequence[Pod], one: Callable[[Pod], Awaitable[T]]
    ) -> tuple[list[tuple[Pod, T]], list[Pod]]:
        """Call ``one`` for each pod. Return the results, and the pods that did not answer."""
        answers = await asyncio.gather(*map(one, asked), return_exceptions=True)
        told: list[tuple[Pod, T]] = []
        missing: list[Pod] = []
        for pod, answer in zip(asked, answers, strict=True):
            if isinstance(answer, PodSilent):
                if pod.health.is_up is not False:
                    # A pod that is down was already logged by a poll.
                    LOG.warning("pod_not_asked", pod=pod.pod_name, reason=str(answer))
                missing.append(pod)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                told.append((pod, answer))
        return told, missing


def _by_id(told: Json) -> dict[str, Row]:
    """Return the rows that have ids, by id. If the value is not a list, there are no rows."""
    rows = told if isinstance(told, list) else []
    objects = (each for each in rows if isinstance(each, dict))
    return {each["id"]: each for each in objects if isinstance(each.get("id"), str)}
