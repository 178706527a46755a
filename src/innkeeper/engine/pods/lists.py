"""Read one page of a list of servers or volumes from several pods at once.

Always true: a row is shown only if this service has recorded its resource in the pod. The pages of
a list together show each row once, in whatever order a pod has its rows. If a pod does not answer,
its rows are missing, and the list says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from operator import attrgetter
from typing import TypeVar

import structlog

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodAnswer, PodCall, PodSilent
from innkeeper.domain.door import Json, message_of
from innkeeper.domain.errors import Invalid, Unavailable
from innkeeper.domain.pods import Pod, PodHome
from innkeeper.engine.lateness import divided
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.creating import AWAY, RETRY_AFTER_S
from innkeeper.engine.pods.list_filters import PAGE, ListFilters, PodFilters
from innkeeper.engine.pods.list_orders import ListOrder, Rank, RankedRow, RowPlace
from innkeeper.engine.pods.list_questions import PodListQuestion
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
        asked = sorted(filter(question.is_about, awaited), key=attrgetter("id"))
        missing = [each.pod_name for each in left_out if question.is_about(each)]
        if len(known) == 1 and asked:
            # In this usual case, the pod sorts, and need not send fields that are not shown.
            question = replace(question, is_alone=True)
        after = await self._after(question, order, awaited, home)
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
            # Rows with equal ranks stay in the order of their pods.
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
    ) -> RowPlace | None:
        """Return the place of the marker's row.

        Raises :class:`Invalid` if the marker is unknown. Raises :class:`Unavailable` if its pod is
        not one of the ``awaited`` pods, or does not answer.
        """
        marker = question.marker
        if marker is None:
            return None
        if home is None or question.project_id not in (None, home.project_id):
            raise Invalid(f"marker [{marker[:64]}] not found")
        pod = next((each for each in awaited if each.id == home.pod_id), None)
        if pod is None:
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S)
        rank: Rank | None = None
        try:
            if not question.is_alone and question.is_about(pod):
                search = partial(self._listed_rank, pod, question, order, marker)
                rank = await self._in_time(pod, search)
            if rank is None:
                show = partial(self._shown_rank, pod, question, order, marker)
                rank = await self._in_time(pod, show)
        except PodSilent as error:
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        return RowPlace(rank, pod.id)

    async def _listed_rank(
        self,
        pod: Pod,
        question: PodListQuestion,
        order: ListOrder,
        marker: str,
        has_told: asyncio.Event,
    ) -> Rank | None:
        """Return the marker's rank among the rows of its pod, or ``None`` if it is not listed.

        The rank depends on all rows before the marker; see :meth:`ListOrder.rising`.
        """
        login, asked, _ = await self._asked(pod, question)
        asked = replace(asked, limit=PAGE)
        latest: Rank | None = None
        async for page in self._pages(pod, login, asked, None, has_told):
            ranks = order.rising(order.ranks(page), latest)
            if marker in page.ids:
                return ranks[page.ids.index(marker)]
            latest = ranks[-1] if ranks else latest
        return None

    async def _shown_rank(
        self, pod: Pod, question: PodListQuestion, order: ListOrder, marker: str, _: asyncio.Event
    ) -> Rank:
        """Return the rank of the marker's row alone."""
        kind = question.request.kind
        login = await self._login(pod, question)
        row = decoded(await self._ask(login, question, f"/{kind}s/{marker}")).get(kind)
        if not isinstance(row, dict):
            raise Invalid(f"marker [{marker[:64]}] not found")
        return order.rank(row)

    async def _rows(
        self, pod: Pod, question: PodListQuestion, order: ListOrder, after: RowPlace | None
    ) -> tuple[list[RankedRow], bool]:
        """Return at most ``limit`` rows of a pod after the marker, and whether more rows follow."""
        return await self._in_time(pod, partial(self._paged, pod, question, order, after))

    async def _in_time(self, pod: Pod, work: Callable[[asyncio.Event], Awaitable[T]]) -> T:
        """Return what ``work`` returns. Raises :class:`PodSilent` if it takes too long."""
        timeout_s, has_told = self._clouds.podding.pod_request_timeout_s, asyncio.Event()
        try:
            async with asyncio.timeout(timeout_s):
                return await work(has_told)
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
        after: RowPlace | None,
        has_told: asyncio.Event,
    ) -> tuple[list[RankedRow], bool]:
        login, asked, filters = await self._asked(pod, question)
        marker, latest = None, None
        if after is not None and after.pod_id == pod.id:
            # The pod itself knows which rows come after the marker.
            marker, latest, after = question.marker, after.rank, None
        found: list[RankedRow] = []
        has_more = False
        async for page in self._pages(pod, login, asked, marker, has_told):
            ranks: Sequence[Rank] = [()] * len(page.ids)
            places: Sequence[int] = range(len(page.ids))
            if not question.is_alone:
                ranks = order.rising(order.ranks(page), latest)
                latest = ranks[-1] if ranks else latest
                if after is not None:
                    places = [
                        each
                        for each in places
                        if order.is_behind(RowPlace(ranks[each], pod.id), after)
                    ]
            shown = await self._show(pod, asked, page, places, filters)
            rows: Sequence[Json] = _at(page.rows, shown)
            if question.is_brief:
                rows = list(map(page.layout.brief, rows))
            found += zip(_at(ranks, shown), _at(page.ids, shown), rows, strict=True)
            has_more = page.has_more
            if len(found) >= question.limit:
                break
        return found[: question.limit], has_more or len(found) > question.limit

    async def _asked(
        self, pod: Pod, question: PodListQuestion
    ) -> tuple[PodLogin, PodListQuestion, PodFilters]:
        """Return the login and the question for a pod, and the filters in all."""
        login = await self._login(pod, question)
        filters = await self._filters.of_pod(pod, login, question.request, question.filters)
        asked = replace(question, filters=filters.sent)
        if filters.here:
            asked = replace(asked, limit=PAGE, needs_details=True)
        if question.needs_admin and question.project_id is not None:
            asked, login = await self._as_admin(pod, asked)
        return login, asked, filters

    async def _pages(
        self,
        pod: Pod,
        login: PodLogin,
        asked: PodListQuestion,
        marker: str | None,
        has_told: asyncio.Event,
    ) -> AsyncIterator[PodPage]:
        """Yield the pages of a pod after a marker, until there are no more rows."""
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
            yield page
            if not page.has_more:
                return
            marker = page.ids[-1]
            # The next page is larger, so that few requests are needed to skip rows that are not
            # shown.
            asked = replace(asked, limit=max(asked.limit, min(PAGE, 2 * asked.limit)))
        raise PodSilent("the list has too many pages", may_have_arrived=True)

    async def _page_of(
        self, pod: Pod, login: PodLogin, question: PodListQuestion, marker: str | None
    ) -> PodPage:
        request = question.request
        answer = await self._ask(login, question, question.target(marker))
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
