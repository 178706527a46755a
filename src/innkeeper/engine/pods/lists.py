"""Read one page of a list of servers or volumes from several pods, all at once.

Always true: each row is of a resource that this service knows to be in the pod. Rows are sorted by
the requested keys, and then by id. A pod without an answer costs the list its rows, and the list
says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from urllib.parse import urlencode

import structlog

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodCall, PodSilent
from innkeeper.domain.door import SERVER, DoorRequest, Json
from innkeeper.domain.errors import Invalid, Unavailable
from innkeeper.domain.pods import Pod, PodHome
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.creating import AWAY, RETRY_AFTER_S
from innkeeper.engine.pods.list_filters import PAGE, ListFilters
from innkeeper.engine.pods.pushing import Pushing
from innkeeper.engine.pods.shown import DoorView
from innkeeper.engine.pods.shown_rows import RowView
from innkeeper.engine.pods.tenants import SERVICES, Tenants, decoded, is_gone
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import pods, routings

LOG = structlog.get_logger("innkeeper.pods")
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
    """A list that a client wants. ``filters`` are translated for each pod.

    ``project_id`` is ``None`` for a list of all projects. A list that ``is_brief`` has only ids and
    names. It ``is_alone`` if it comes from a single pod. It ``needs_admin`` if pods apply a filter
    only for administrators.
    """

    request: DoorRequest
    filters: Sequence[tuple[str, str]]
    sort: Sort
    limit: int
    marker: str | None
    project_id: str | None
    az_name: str | None = None
    is_brief: bool = False
    is_alone: bool = False
    needs_admin: bool = False


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
        self._filters = ListFilters(clouds, pushing)

    async def page(self, question: PodListQuestion) -> DoorPage:
        """Return a page. Raises :class:`Invalid` for an unknown marker or sort key."""
        kind, marker, project_id = question.request.kind, question.marker, question.project_id
        for key, _ in question.sort:
            if key not in SORTS[kind]:
                raise Invalid(f"The door does not sort by {key}.")
        self._filters.check(question.request, question.filters)

        def look(tx: Tx) -> tuple[list[Pod], PodHome | None]:
            homes = routings.pods_of(tx, project_id, kind)
            by_id = {each.id: each for each in pods.every(tx)}
            found = {} if marker is None else routings.homes(tx, kind, [marker])
            return [by_id[each] for each in homes], found.get(marker or "")

        known, home = await self._clouds.engine.read(look)
        asked = [each for each in known if question.az_name in (None, each.az_name)]
        after = await self._after(question, known, home)
        if len(known) == 1 and asked and asked[0].health.is_up is not False:
            # The usual case. The pod sorts, and rows need only the fields that are shown.
            question = replace(question, is_alone=True)
        # A list must not wait for a pod that has not answered for a while.
        missing = [each.pod_name for each in asked if each.health.is_up is False]
        asked = [each for each in asked if each.health.is_up is not False]
        answers = await asyncio.gather(
            *(self._rows(each, question, after) for each in asked), return_exceptions=True
        )
        rows: list[dict[str, Json]] = []
        has_more = False
        for pod, answer in zip(asked, answers, strict=True):
            if isinstance(answer, PodSilent):
                LOG.warning("pod_list_failed", pod=pod.pod_name, reason=str(answer))
                missing.append(pod.pod_name)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                rows += answer[0]
                has_more = has_more or answer[1]
        if not question.is_alone:
            _sort(rows, kind, question.sort)
        has_more = bool(rows) and (has_more or len(rows) > question.limit)
        return DoorPage(rows[: question.limit], has_more, missing)

    async def _after(
        self, question: PodListQuestion, known: Sequence[Pod], home: PodHome | None
    ) -> tuple[int, Mapping[str, Json]] | None:
        """Return the pod of the marker, and the marker's row."""
        if question.marker is None:
            return None
        if home is None or question.project_id not in (None, home.project_id):
            raise Invalid(f"marker [{question.marker[:64]}] not found")
        pod, kind = next(each for each in known if each.id == home.pod_id), question.request.kind
        try:
            login = await self._login(pod, question)
            told = await self._ask(pod, login, question, f"/{kind}s/{question.marker}")
        except PodSilent as error:
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        row = told.get(kind)
        if not isinstance(row, dict):
            raise Invalid(f"marker [{question.marker[:64]}] not found")
        return pod.id, row

    async def _rows(
        self, pod: Pod, question: PodListQuestion, after: tuple[int, Mapping[str, Json]] | None
    ) -> tuple[list[dict[str, Json]], bool]:
        """Return the rows of a pod after the marker, at most the limit, and whether it has more."""
        timeout_s = self._clouds.podding.pod_request_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await self._paged(pod, question, after)
        except TimeoutError as error:
            raise PodSilent(f"no list within {timeout_s:g} seconds") from error

    async def _paged(
        self, pod: Pod, question: PodListQuestion, after: tuple[int, Mapping[str, Json]] | None
    ) -> tuple[list[dict[str, Json]], bool]:
        kind, login = question.request.kind, await self._login(pod, question)
        filters = await self._filters.of_pod(pod, login, question.request, question.filters)
        asked = replace(question, filters=filters.sent)
        if filters.here:
            asked = replace(asked, limit=PAGE, is_brief=False)
        if question.needs_admin and question.project_id is not None:
            asked, login = await self._as_admin(pod, asked)
        is_next = _is_next(kind, question.sort)
        marker = question.marker if after is not None and after[0] == pod.id else None
        views: dict[PodHome, RowView] = {}
        found: list[dict[str, Json]] = []
        for _ in range(PAGES_MAX):
            told = await self._ask(pod, login, asked, _target(asked, marker))
            rows = told.get(f"{kind}s")
            if not isinstance(rows, list) or not all(map(_is_row, rows)):
                raise PodSilent("its answer is no list", may_have_arrived=True)
            for row, home in zip(rows, await self._homes(pod, question, rows), strict=True):
                is_behind = question.is_alone or after is None or is_next(after[1], row)
                if home is not None and is_behind and filters.accept(row.get, home):
                    view = views.get(home)
                    if view is None:
                        view = views[home] = self._view(pod, home, question)
                    found.append(view.change(row))
            has_more = bool(rows) and f"{kind}s_links" in told
            if len(found) >= question.limit or not has_more:
                return found[: question.limit], has_more or len(found) > question.limit
            marker = rows[-1]["id"]
        raise PodSilent("the list is too far from its start", may_have_arrived=True)

    async def _homes(
        self, pod: Pod, question: PodListQuestion, rows: Sequence[Mapping[str, Json]]
    ) -> list[PodHome | None]:
        """Return the home of each row. Rows that are not known to be in the pod have none."""
        ids, kind = [each["id"] for each in rows], question.request.kind
        homes = await self._clouds.engine.read(lambda tx: routings.homes(tx, kind, ids))
        return [
            home
            if (home := homes.get(uuid)) is not None
            and home.pod_id == pod.id
            and (question.project_id is None or home.project_id == question.project_id)
            else None
            for uuid in ids
        ]

    async def _as_admin(self, pod: Pod, asked: PodListQuestion) -> tuple[PodListQuestion, PodLogin]:
        """Return the question about one project for the administrator's login, and this login."""
        login, timeout_s = await self._login(pod, asked), self._clouds.podding.pod_request_timeout_s
        session = await self._clouds.client.session(login, timeout_s)
        scope = [("all_tenants", "1"), ("project_id", session.project_id)]
        return replace(asked, filters=[*asked.filters, *scope]), await self._tenants.own(pod)

    def _view(self, pod: Pod, home: PodHome, question: PodListQuestion) -> RowView:
        request = question.request
        view = DoorView.of(pod, home, request.address, is_admin=request.caller.is_admin)
        return RowView(view)

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


def _target(question: PodListQuestion, marker: str | None) -> str:
    """Return the path and query of one page of a pod."""
    kind = question.request.kind
    query = [*question.filters, *_sort_query(kind, question.sort), ("limit", str(question.limit))]
    query += [("marker", marker)] if marker is not None else []
    query += [("all_tenants", "1")] if question.project_id is None else []
    is_brief = question.is_alone and question.is_brief
    return f"/{kind}s{'' if is_brief else '/detail'}?{urlencode(query)}"


def _sort(rows: list[dict[str, Json]], kind: str, sort: Sort) -> None:
    """Sort rows by the requested keys. A sort is stable, so the last key comes first."""
    for key, is_descending in reversed(sort):
        rows.sort(key=_rank_by(SORTS[kind][key]), reverse=is_descending)


def _rank_by(field: str) -> Callable[[Mapping[str, Json]], tuple[int, float, str]]:
    return lambda row: _rank(row.get(field))


def _is_next(kind: str, sort: Sort) -> Callable[[Mapping[str, Json], Mapping[str, Json]], bool]:
    """Return a function that says whether its second row comes after the first one."""
    fields = [(SORTS[kind][key], is_descending) for key, is_descending in sort]

    def is_next(first: Mapping[str, Json], second: Mapping[str, Json]) -> bool:
        for field, is_descending in fields:
            left, right = _rank(first.get(field)), _rank(second.get(field))
            if left != right:
                return (right < left) if is_descending else (left < right)
        return False

    return is_next


def _rank(value: Json) -> tuple[int, float, str]:
    """Return a value that can be compared with that of any other value. Nulls come first."""
    if type(value) is str:
        return 1, 0.0, value
    if value is None:
        return 0, 0.0, ""
    return (1, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))
