"""Read one page of a list of servers or volumes from several pods at once.

Always true: a row is shown only if this service has recorded its resource in the pod. Rows are
sorted by the requested keys, and finally by id. If a pod does not answer, its rows are missing, and
the list says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import urlencode

import structlog

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodAnswer, PodCall, PodSilent
from innkeeper.domain.door import DoorRequest, Json, message_of
from innkeeper.domain.errors import Invalid, Unavailable
from innkeeper.domain.pods import Pod, PodHome
from innkeeper.engine.lateness import divided
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.creating import AWAY, RETRY_AFTER_S
from innkeeper.engine.pods.list_filters import PAGE, ListFilters, PodFilters
from innkeeper.engine.pods.list_orders import ListOrder, Rank, RankedRow, Sort, sort_query
from innkeeper.engine.pods.listed_rows import PodPage, RowLayouts
from innkeeper.engine.pods.provisioning import Provisioning
from innkeeper.engine.pods.shown import DoorView
from innkeeper.engine.pods.shown_rows import RowView
from innkeeper.engine.pods.tenants import SERVICES, Tenants, decoded, is_gone
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import pods, routings

LOG = structlog.get_logger("innkeeper.pods")
T = TypeVar("T")
PAGES_MAX = 200
"""The maximum number of pages that are read from a pod for one page of a client's list."""
INVALID = "A parameter of the list is invalid."
Homes = Sequence[tuple[PodHome, Sequence[str]]]
"""Pairs of a home (the pod, project and a few more facts of resources) and the ids of its
resources."""


@dataclass(frozen=True, slots=True)
class PodListQuestion:
    """A client's request for a list. ``filters`` are not yet translated for a pod.

    ``project_id`` is ``None`` for a list of all projects. With ``is_brief``, rows only have an id,
    a name and links. With ``is_alone``, all rows come from a single pod. With ``needs_admin``, pods
    apply one of the filters only for administrators. With ``needs_details``, this service applies a
    filter that reads details.
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
    needs_details: bool = False

    def is_about(self, pod: Pod) -> bool:
        """Return whether the list may contain rows of a pod."""
        return self.az_name in (None, pod.az_name)

    @property
    def asks_briefly(self) -> bool:
        """Whether a pod is asked for a list without details."""
        return self.is_alone and self.is_brief and not self.needs_details


@dataclass(frozen=True, slots=True)
class DoorPage:
    """A page: its rows, whether more rows follow, and the names of pods that did not answer.

    ``last`` is the id of the last row, if there is one.
    """

    rows: Sequence[Json]
    has_more: bool
    missing: Sequence[str]
    last: str = ""


class Lists:
    """Reads lists from pods."""

    def __init__(self, clouds: PodClouds, tenants: Tenants, provisioning: Provisioning) -> None:
        self._clouds = clouds
        self._tenants = tenants
        self._filters = ListFilters(clouds, provisioning)
        self._layouts = RowLayouts()

    async def page(self, question: PodListQuestion) -> DoorPage:
        """Return a page. Raises :class:`Invalid` for an unknown marker or sort key."""
        kind, marker, project_id = question.request.kind, question.marker, question.project_id
        order = ListOrder.of(kind, question.sort)
        self._filters.check(question.request, question.filters)

        def look(tx: Tx) -> tuple[list[Pod], PodHome | None]:
            homes = routings.pods_of(tx, project_id, kind)
            by_id = {each.id: each for each in pods.every(tx)}
            found = [] if marker is None else routings.homes(tx, kind, [marker])
            return [by_id[each] for each in homes], _home_of(marker, found)

        known, home = await self._clouds.engine.read(look)
        # A list must not wait for a pod that is down or late.
        awaited, left_out = divided(known, self._clouds.is_awaited)
        after = await self._after(question, order, awaited, home)
        asked = [each for each in awaited if question.is_about(each)]
        missing = [each.pod_name for each in left_out if question.is_about(each)]
        if len(known) == 1 and asked:
            # In this usual case, the pod sorts, and need not send fields that are not shown.
            question = replace(question, is_alone=True)
        answers = await asyncio.gather(
            *(self._rows(each, question, order, after) for each in asked), return_exceptions=True
        )
        rows: list[RankedRow] = []
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
            order.sort(rows)
        has_more = bool(rows) and (has_more or len(rows) > question.limit)
        shown = rows[: question.limit]
        last = shown[-1][1] if shown else ""
        return DoorPage([row for _, _, row in shown], has_more, missing, last)

    async def _after(
        self,
        question: PodListQuestion,
        order: ListOrder,
        awaited: Sequence[Pod],
        home: PodHome | None,
    ) -> tuple[int, Rank] | None:
        """Return the row id of the marker's pod, and the rank of the marker's row.

        Raises :class:`Invalid` if the marker is unknown. Raises :class:`Unavailable` if its pod is
        not one of the ``awaited`` pods, or does not answer.
        """
        if question.marker is None:
            return None
        if home is None or question.project_id not in (None, home.project_id):
            raise Invalid(f"marker [{question.marker[:64]}] not found")
        kind = question.request.kind
        pod = next((each for each in awaited if each.id == home.pod_id), None)
        if pod is None:
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S)
        try:
            async with asyncio.timeout(self._clouds.podding.pod_request_timeout_s):
                login = await self._login(pod, question)
                answer = await self._ask(login, question, f"/{kind}s/{question.marker}")
            row = decoded(answer).get(kind)
        except TimeoutError as error:
            self._clouds.note_late(pod)
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        except PodSilent as error:
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        if not isinstance(row, dict):
            raise Invalid(f"marker [{question.marker[:64]}] not found")
        return pod.id, order.rank(row)

    async def _rows(
        self, pod: Pod, question: PodListQuestion, order: ListOrder, after: tuple[int, Rank] | None
    ) -> tuple[list[RankedRow], bool]:
        """Return at most ``limit`` rows of a pod after the marker, and whether more rows follow."""
        timeout_s, has_told = self._clouds.podding.pod_request_timeout_s, asyncio.Event()
        try:
            async with asyncio.timeout(timeout_s):
                return await self._paged(pod, question, order, after, has_told)
        except TimeoutError as error:
            # A pod that has sent some pages is not late, even if the list has many pages.
            if not has_told.is_set():
                self._clouds.note_late(pod)
            raise PodSilent(f"the pod sent no list within {timeout_s:g} seconds") from error

    async def _paged(
        self,
        pod: Pod,
        question: PodListQuestion,
        order: ListOrder,
        after: tuple[int, Rank] | None,
        has_told: asyncio.Event,
    ) -> tuple[list[RankedRow], bool]:
        login = await self._login(pod, question)
        filters = await self._filters.of_pod(pod, login, question.request, question.filters)
        asked = replace(question, filters=filters.sent)
        if filters.here:
            asked = replace(asked, limit=PAGE, needs_details=True)
        if question.needs_admin and question.project_id is not None:
            asked, login = await self._as_admin(pod, asked)
        marker = question.marker if after is not None and after[0] == pod.id else None
        found: list[RankedRow] = []
        for _ in range(PAGES_MAX):
            try:
                page = await self._page_of(pod, login, asked, marker)
            except Invalid as error:
                if not has_told.is_set():
                    raise
                # This is not the client's fault. The marker is the last row of the previous page,
                # and was deleted since.
                raise PodSilent("it refused the next page of its list") from error
            has_told.set()
            ranks: Sequence[Rank] = [()] * len(page.ids)
            places: Sequence[int] = range(len(page.ids))
            if not question.is_alone:
                ranks = order.ranks(page)
                if after is not None:
                    places = [each for each in places if order.is_after(ranks[each], after[1])]
            shown = await self._show(pod, asked, page, places, filters)
            rows: Sequence[Json] = _at(page.rows, shown)
            if question.is_brief:
                rows = list(map(page.layout.brief, rows))
            found += zip(_at(ranks, shown), _at(page.ids, shown), rows, strict=True)
            if len(found) >= question.limit or not page.has_more:
                return found[: question.limit], page.has_more or len(found) > question.limit
            marker = page.ids[-1]
            # The next page is larger, so that few requests are needed to skip rows that are not
            # shown.
            asked = replace(asked, limit=max(asked.limit, min(PAGE, 2 * asked.limit)))
        raise PodSilent("the list has too many pages", may_have_arrived=True)

    async def _page_of(
        self, pod: Pod, login: PodLogin, question: PodListQuestion, marker: str | None
    ) -> PodPage:
        request = question.request
        answer = await self._ask(login, question, _target(question, marker))
        of = (pod.uuid, question.asks_briefly, *request.headers.values())
        return self._layouts.page(of, f"{request.kind}s", answer)

    async def _show(
        self,
        pod: Pod,
        question: PodListQuestion,
        page: PodPage,
        places: Sequence[int],
        filters: PodFilters,
    ) -> Sequence[int]:
        """Change rows into rows of this service. Return the indexes of the rows to show.

        A row is shown if this service has recorded its resource in this pod, and if it passes the
        filters that this service itself applies.
        """
        request, ids = question.request, _at(page.ids, places)
        homes = await self._clouds.engine.read(lambda tx: routings.homes(tx, request.kind, ids))
        homes = [each for each in homes if _is_in(each[0], pod, question)]
        shown: list[Sequence[int]] = []
        for home, found in _by_home(homes, ids, places).items():
            own = found
            if filters.here:
                own = [each for each in found if filters.accept(partial(_value, page, each), home)]
            view = DoorView.of(pod, home, request.address, is_admin=request.caller.is_admin)
            RowView(view, page.layout).change(_at(page.rows, own), _at(page.ids, own))
            shown.append(own)
        return shown[0] if len(shown) == 1 else sorted(place for own in shown for place in own)

    async def _as_admin(self, pod: Pod, asked: PodListQuestion) -> tuple[PodListQuestion, PodLogin]:
        """Return the question with filters for its project, and the administrator's login."""
        login, timeout_s = await self._login(pod, asked), self._clouds.podding.pod_request_timeout_s
        session = await self._clouds.client.session(login, timeout_s)
        scope = [("all_tenants", "1"), ("project_id", session.project_id)]
        return replace(asked, filters=[*asked.filters, *scope]), await self._tenants.own(pod)

    async def _login(self, pod: Pod, question: PodListQuestion) -> PodLogin:
        if question.project_id is None:
            return await self._tenants.own(pod)
        return await self._tenants.of_project(pod, question.project_id)

    async def _ask(self, login: PodLogin, question: PodListQuestion, target: str) -> PodAnswer:
        timeout_s = self._clouds.podding.pod_request_timeout_s
        request = question.request
        call = PodCall(SERVICES[request.kind], "GET", target, timeout_s, b"", request.headers)
        answer = await self._clouds.client.send(login, call)
        if answer.status == HTTPStatus.BAD_REQUEST:
            raise Invalid(message_of(decoded(answer)) or INVALID)
        if answer.status != HTTPStatus.OK and not is_gone(answer):
            raise PodSilent.of_status(answer.status, may_have_arrived=True)
        return answer


def _at(column: Sequence[T], places: Sequence[int]) -> Sequence[T]:
    """Return the values of a column at the indexes ``places``."""
    return column if len(places) == len(column) else [column[place] for place in places]


def _home_of(uuid: str | None, homes: Homes) -> PodHome | None:
    return next((home for home, uuids in homes if uuid in uuids), None)


def _by_home(
    homes: Homes, ids: Sequence[str], places: Sequence[int]
) -> Mapping[PodHome, Sequence[int]]:
    """Return the indexes of rows by their home.

    Rows without a home are left out.
    """
    if len(homes) == 1 and set(homes[0][1]).issuperset(ids):
        # In the usual case, all rows have the same home. It is handled faster.
        return {homes[0][0]: places}
    home_of = {uuid: home for home, uuids in homes for uuid in uuids}
    found: dict[PodHome, list[int]] = {}
    for uuid, place in zip(ids, places, strict=True):
        if uuid in home_of:
            found.setdefault(home_of[uuid], []).append(place)
    return found


def _value(page: PodPage, place: int, name: str) -> Json:
    """Return the value of a field of a row."""
    return page.layout.value(name)(page.rows[place])


def _is_in(home: PodHome, pod: Pod, question: PodListQuestion) -> bool:
    return home.pod_id == pod.id and question.project_id in (None, home.project_id)


def _target(question: PodListQuestion, marker: str | None) -> str:
    """Return the path and the query with which a pod is asked for a page."""
    kind = question.request.kind
    query = [*question.filters, *sort_query(kind, question.sort), ("limit", str(question.limit))]
    query += [("marker", marker)] if marker is not None else []
    query += [("all_tenants", "1")] if question.project_id is None else []
    return f"/{kind}s{'' if question.asks_briefly else '/detail'}?{urlencode(query)}"
