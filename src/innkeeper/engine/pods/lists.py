"""Read one page of a list of servers or volumes from several pods, all at once.

Always true: each row is of a resource that this service knows to be in the pod. Rows are sorted by
the requested keys, and then by id. A pod without an answer costs the list its rows, and the list
says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from http import HTTPStatus
from urllib.parse import urlencode

import structlog

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodCall, PodSilent
from innkeeper.domain.door import SERVER, DoorRequest, Json
from innkeeper.domain.errors import Conflict, Invalid, Unavailable
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods import plans
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.creating import AWAY, RETRY_AFTER_S
from innkeeper.engine.pods.pushing import Pushing
from innkeeper.engine.pods.shown import DoorView
from innkeeper.engine.pods.tenants import SERVICES, Tenants, decoded, is_gone
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import pods, routings

LOG = structlog.get_logger("innkeeper.pods")
IMAGE_FILTER = "image"
PAGES_MAX = 200
"""So many pages of a pod are read for one page of the door."""
SORTS = {
    SERVER: {
        "created_at": "created",
        "updated_at": "updated",
        "display_name": "name",
        "vm_state": "OS-EXT-STS:vm_state",
        "uuid": "id",
    },
    "volume": {
        "created_at": "created_at",
        "updated_at": "updated_at",
        "name": "name",
        "display_name": "name",
        "size": "size",
        "status": "status",
        "id": "id",
    },
}
"""The keys that lists can be sorted by, and the fields of answers that have their values."""

Sort = Sequence[tuple[str, bool]]
"""Keys, each with whether it is in descending order."""


@dataclass(frozen=True, slots=True)
class PodListQuestion:
    """A list that a client wants. ``filters`` are sent to pods, with the ids of their images.

    ``project_id`` is ``None`` for a list of all projects.
    """

    request: DoorRequest
    filters: Sequence[tuple[str, str]]
    sort: Sort
    limit: int
    marker: str | None
    project_id: str | None
    az_name: str | None = None


@dataclass(frozen=True, slots=True)
class DoorPage:
    """Rows with details, whether there are more, and the names of pods without an answer."""

    rows: Sequence[Mapping[str, Json]]
    has_more: bool
    missing: Sequence[str]


class Lists:
    """Lists over pods."""

    def __init__(self, clouds: PodClouds, tenants: Tenants, pushing: Pushing) -> None:
        self._clouds = clouds
        self._tenants = tenants
        self._pushing = pushing

    async def page(self, question: PodListQuestion) -> DoorPage:
        """Return a page. Raises :class:`Invalid` for an unknown marker or sort key."""
        kind = question.request.kind
        for key, _ in question.sort:
            if key not in SORTS[kind]:
                raise Invalid(f"The door does not sort by {key}.")

        def look(tx: Tx) -> tuple[list[PodRouting], dict[int, Pod]]:
            found = routings.of_project(tx, question.project_id, kind)
            return list(found), {each.id: each for each in pods.every(tx)}

        found, by_id = await self._clouds.engine.read(look)
        known = {each.top_id: each for each in found if each.bottom_id is not None}
        homes = [by_id[each] for each in sorted({each.pod_id for each in known.values()})]
        asked = [each for each in homes if question.az_name in (None, each.az_name)]
        after = await self._after(question, known, by_id)
        # A list must not wait for a pod that has not answered for a while.
        missing = [each.pod_name for each in asked if each.health.is_up is False]
        asked = [each for each in asked if each.health.is_up is not False]
        answers = await asyncio.gather(
            *(self._rows(each, question, known, after) for each in asked), return_exceptions=True
        )
        rows: list[dict[str, Json]] = []
        for pod, answer in zip(asked, answers, strict=True):
            if isinstance(answer, PodSilent):
                LOG.warning("pod_list_failed", pod=pod.pod_name, reason=str(answer))
                missing.append(pod.pod_name)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                rows += answer
        order = _order(kind, question.sort)
        rows.sort(key=cmp_to_key(order))
        return DoorPage(rows[: question.limit], len(rows) > question.limit, missing)

    async def _after(
        self, question: PodListQuestion, known: Mapping[str, PodRouting], by_id: Mapping[int, Pod]
    ) -> tuple[int, Mapping[str, Json]] | None:
        """Return the pod of the marker, and the marker's row."""
        if question.marker is None:
            return None
        home = known.get(question.marker)
        if home is None:
            raise Invalid(f"marker [{question.marker[:64]}] not found")
        pod, kind = by_id[home.pod_id], question.request.kind
        try:
            login = await self._login(pod, question)
            told = await self._ask(pod, login, question, f"/{kind}s/{home.top_id}")
        except PodSilent as error:
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        row = told.get(kind)
        if not isinstance(row, dict):
            raise Invalid(f"marker [{question.marker[:64]}] not found")
        return pod.id, row

    async def _rows(
        self,
        pod: Pod,
        question: PodListQuestion,
        known: Mapping[str, PodRouting],
        after: tuple[int, Mapping[str, Json]] | None,
    ) -> list[dict[str, Json]]:
        """Return the rows of a pod after the marker, one more than the limit at most."""
        timeout_s = self._clouds.podding.pod_request_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await self._paged(pod, question, known, after)
        except TimeoutError as error:
            raise PodSilent(f"no list within {timeout_s:g} seconds") from error

    async def _paged(
        self,
        pod: Pod,
        question: PodListQuestion,
        known: Mapping[str, PodRouting],
        after: tuple[int, Mapping[str, Json]] | None,
    ) -> list[dict[str, Json]]:
        kind, login = question.request.kind, await self._login(pod, question)
        filters = await self._filters(pod, login, question)
        if filters is None:
            return []
        question = replace(question, filters=filters)
        order = _order(kind, question.sort)
        wanted = question.limit + 1
        marker = question.marker if after is not None and after[0] == pod.id else None
        found: list[dict[str, Json]] = []
        for _ in range(PAGES_MAX):
            query = [*question.filters, *_sort_query(kind, question.sort), ("limit", str(wanted))]
            query += [("marker", marker)] if marker is not None else []
            query += [("all_tenants", "1")] if question.project_id is None else []
            told = await self._ask(pod, login, question, f"/{kind}s/detail?{urlencode(query)}")
            rows = told.get(f"{kind}s")
            if not isinstance(rows, list) or not all(_is_row(each) for each in rows):
                raise PodSilent("its answer is no list", may_have_arrived=True)
            for each in rows:
                routing = known.get(each["id"])
                is_behind = after is None or order(each, after[1]) > 0
                if routing is not None and routing.pod_id == pod.id and is_behind:
                    found.append(self._view(pod, routing, question).change(each))
            if len(found) >= wanted or not rows or f"{kind}s_links" not in told:
                return found[:wanted]
            marker = rows[-1]["id"]
        raise PodSilent("the list is too far from its start", may_have_arrived=True)

    async def _filters(
        self, pod: Pod, login: PodLogin, question: PodListQuestion
    ) -> list[tuple[str, str]] | None:
        """Return the filters for a pod, whose images have ids of their own.

        ``None`` means that the pod has no row that passes.
        """
        wanted = [each for key, each in question.filters if key == IMAGE_FILTER and each]
        if question.request.kind != SERVER or not wanted:
            return list(question.filters)
        caller = question.request.caller

        def look(tx: Tx) -> list[str]:
            return [plans.image_of(tx, each, caller)[1] or "" for each in wanted]

        try:
            names = await self._clouds.engine.read(look)
            here = [await self._pushing.image(pod, login, each) for each in names]
        except (Conflict, Invalid):
            return None
        rest = [each for each in question.filters if each[0] != IMAGE_FILTER]
        return [*rest, *((IMAGE_FILTER, each) for each in here)]

    def _view(self, pod: Pod, routing: PodRouting, question: PodListQuestion) -> DoorView:
        request = question.request
        return DoorView.of(pod, routing, request.address, is_admin=request.caller.is_admin)

    async def _login(self, pod: Pod, question: PodListQuestion) -> PodLogin:
        if question.project_id is None:
            return await self._tenants.own(pod)
        return await self._tenants.of_project(pod, question.project_id)

    async def _ask(
        self, pod: Pod, login: PodLogin, question: PodListQuestion, target: str
    ) -> dict[str, Json]:
        timeout_s = self._clouds.podding.pod_request_timeout_s
        request = question.request
        call = PodCall(SERVICES[request.kind], "GET", target, timeout_s, b"", request.headers)
        answer = await self._clouds.client.send(login, call)
        if is_gone(answer):
            return {}
        if answer.status == HTTPStatus.BAD_REQUEST:
            raise Invalid(_words(decoded(answer)))
        if answer.status != HTTPStatus.OK:
            raise PodSilent(f"it answers with the status {answer.status}", may_have_arrived=True)
        return decoded(answer)


def _words(told: Mapping[str, Json]) -> str:
    fault = next(iter(told.values()), None)
    message = fault.get("message") if isinstance(fault, Mapping) else None
    return message if isinstance(message, str) else "A parameter of the list is invalid."


def _is_row(row: object) -> bool:
    return isinstance(row, dict) and isinstance(row.get("id"), str)


def _sort_query(kind: str, sort: Sort) -> list[tuple[str, str]]:
    words = [(key, "desc" if is_descending else "asc") for key, is_descending in sort]
    if kind == SERVER:
        return [pair for key, word in words for pair in (("sort_key", key), ("sort_dir", word))]
    return [("sort", ",".join(f"{key}:{word}" for key, word in words))]


def _order(kind: str, sort: Sort) -> Json:
    """Return a function that compares two rows, as for ``cmp_to_key``."""
    fields = [(SORTS[kind][key], is_descending) for key, is_descending in sort]

    def compare(a: Mapping[str, Json], b: Mapping[str, Json]) -> int:
        for field, is_descending in fields:
            left, right = a.get(field), b.get(field)
            if left == right:
                continue
            is_less = left is None or (right is not None and _pair(left) < _pair(right))
            return 1 if is_less == is_descending else -1
        return 0

    return compare


def _pair(value: Json) -> tuple[float, str]:
    """Return a value that can be compared with that of any other value."""
    return (float(value), "") if isinstance(value, int | float) else (0.0, str(value))
