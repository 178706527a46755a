"""Read one page of a list of servers from all child zones at once.

Always true: however many servers a child has, it is asked for only one page, or for a second one if
the first is too large. If a child gives no usable answer, its servers are missing, and the list
says so. A child can show a server only if this zone has recorded the server in this child. It can
show other servers only if they are deleted. This zone has no records of deleted servers, so any
child may have them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import urlencode

import structlog

from innkeeper.clients import zones
from innkeeper.clients.zone_wire import ANSWER_BYTES_MAX, ZoneSilent
from innkeeper.clients.zones import ZoneRequest
from innkeeper.domain.compute import Status
from innkeeper.domain.errors import Unavailable
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import UUID_PATTERN
from innkeeper.domain.zone_tree import ChildZone, TreeRequest, ZoneServer
from innkeeper.engine.lateness import LATE_SHARE, Lateness, divided
from innkeeper.engine.zones import links
from innkeeper.engine.zones.forwarding import RETRY_AFTER_S
from innkeeper.engine.zones.known_children import KnownChild, decoded
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.engine.zones.tree_request import ZONE, caller_below
from innkeeper.systems.compute.servers import zone_servers
from innkeeper.systems.zones import child_rows, remote
from innkeeper.systems.zones.child_rows import ListRow

LOG = structlog.get_logger("innkeeper.zones")
AFTER, KEY_OF = "zone_after", "zone_key_of"
"""Query parameters between zones. ``AFTER`` asks for the servers after a sort key. ``KEY_OF`` asks
for the sort key of a server."""
MARKER_AWAY = "A zone that may have the marker does not answer."
T = TypeVar("T")


SERVER_BYTES_MAX = 512 * 2**10
"""The maximum size of a server in an answer in bytes, even with all possible metadata."""
FEW = (ANSWER_BYTES_MAX - zones.ANSWER_BYTES_LEAST) // SERVER_BYTES_MAX
"""This number of servers always fits into one answer, however large the servers are."""


@dataclass(frozen=True, slots=True)
class ListQuestion:
    """A client's request for a list. ``query`` has no marker and no limit.

    Links in the answers have an invented host, which is replaced by ``address``. ``project_id`` is
    ``None`` for a list of several projects. The sort key of a server has ``key_length`` values.
    """

    target: str
    query: Sequence[tuple[str, str]]
    headers: Mapping[str, str]
    caller: RequestContext
    address: str
    limit: int
    project_id: str | None
    with_deleted: bool
    has_details: bool
    key_length: int


@dataclass(frozen=True, slots=True)
class ZonePage:
    """The answer of one child: a page of its list.

    With ``is_partial``, servers may be missing, for example because a zone below the child did not
    answer. With ``is_cut``, the page has fewer servers than were asked for, although more may
    follow.
    """

    rows: Sequence[ListRow] = ()
    is_partial: bool = False
    is_cut: bool = False


class ServerLists:
    """Reads lists of servers from child zones."""

    def __init__(self, tree: ZoneTree) -> None:
        self._tree = tree
        self._parts = tree.parts
        self._late = Lateness(tree.parts.zoning.zone_poll_interval_s)

    async def asked(self, question: ListQuestion) -> list[KnownChild]:
        """Return the children that may have servers of a list."""
        if not self._tree.routes:
            return []
        known = await self._tree.children.every()
        if not known:
            return []
        wanted = question.project_id
        ids = set(await self._parts.engine.read(lambda tx: remote.children_of_project(tx, wanted)))
        if question.with_deleted:
            ids |= {each.zone.id for each in await self._with_deleted(question.caller)}
        return [each for each in known if each.zone.id in ids]

    async def _with_deleted(self, caller: RequestContext) -> list[KnownChild]:
        """Return the children that may have deleted servers of a caller."""
        hop = caller.hop
        if self._tree.hops_left(hop) <= 0:
            return []
        visited = () if hop is None else hop.tree.visited
        known = await self._tree.children.every()
        # A disabled child must not make the lists of all projects partial.
        enabled = [each for each in known if each.zone.is_enabled]
        return [each for each in enabled if each.zone.state.zone_id not in visited]

    async def pages(
        self, asked: Sequence[KnownChild], question: ListQuestion, after: str | None
    ) -> tuple[list[ZonePage], list[str]]:
        """Return a page of each child, and the names of children without a page."""
        return await self._answers(
            asked, question.caller, lambda child, tree: self._page(child, question, after, tree)
        )

    async def _answers(
        self,
        asked: Sequence[KnownChild],
        caller: RequestContext,
        ask: Callable[[KnownChild, TreeRequest], Awaitable[T]],
    ) -> tuple[list[T], list[str]]:
        """Return the answers of children, and the names of children without an answer.

        A child that is disabled, inactive or late is not asked, so that no list waits for it.
        """
        asked, left_out = divided(asked, lambda each: self._is_awaited(each.zone))
        missing = [each.zone.name for each in left_out]
        timeout_s = self._parts.zoning.zone_request_timeout_s
        tree = self._tree.below(caller.hop, timeout_s)
        had_time = tree.time_left_ms >= LATE_SHARE * timeout_s * 1000
        answers = await asyncio.gather(*(ask(each, tree) for each in asked), return_exceptions=True)
        usable: list[T] = []
        for child, answer in zip(asked, answers, strict=True):
            if isinstance(answer, ZoneSilent):
                LOG.warning("zone_list_failed", zone=child.zone.name, reason=str(answer))
                missing.append(child.zone.name)
                # If a zone parent allowed little time, the child must not count as late for other
                # requests.
                if answer.is_late and had_time:
                    self._late.note(child.zone.uuid, self._parts.clock())
            elif isinstance(answer, BaseException):
                raise answer
            else:
                usable.append(answer)
        return usable, missing

    def _is_awaited(self, child: ChildZone) -> bool:
        is_late = self._late.is_late(child.uuid, child.state.last_seen_at)
        return child.is_reachable and not is_late

    async def key_of(self, uuid: str, question: ListQuestion) -> str | None:
        """Return the sort key of a server in a child zone, or ``None`` if there is no such server.

        The server may be deleted. Raises :class:`Unavailable` if a child that may have the server
        does not answer.
        """
        asked = await self._homes(uuid, question)
        answers, missing = await self._answers(
            asked, question.caller, lambda child, tree: self._key_in(child, uuid, question, tree)
        )
        keys = [each for each in answers if each is not None]
        if missing and not keys:
            raise Unavailable(MARKER_AWAY, retry_after_s=RETRY_AFTER_S)
        # Only one child can have the server. If a second child claims it, one of them is wrong.
        return keys[0] if len(keys) == 1 else None

    async def _homes(self, uuid: str, question: ListQuestion) -> list[KnownChild]:
        """Return the children that may have a server that the caller may list."""
        if UUID_PATTERN.fullmatch(uuid) is None:
            return []
        home, own = await self._parts.engine.read(
            lambda tx: (remote.get(tx, uuid), zone_servers.ever_here(tx, [uuid]))
        )
        if own:
            return []
        if home is None:
            return await self._with_deleted(question.caller)
        child = await self._tree.children.by_id(home.child_id)
        may_list = _may_list(question, home.project_id)
        return [child] if child is not None and may_list else []

    async def _key_in(
        self, child: KnownChild, uuid: str, question: ListQuestion, tree: TreeRequest
    ) -> str | None:
        query = urlencode([*question.query, (KEY_OF, uuid)])
        told = await self._ask(child, f"{question.target}?{query}", question, 1, tree)
        zone = told.get(ZONE)
        key = zone.get("key") if isinstance(zone, Mapping) else None
        return key if isinstance(key, str) else None

    async def _page(
        self, child: KnownChild, question: ListQuestion, after: str | None, tree: TreeRequest
    ) -> ZonePage:
        """Return a page of a child. If the answer would be too large, ask for a shorter page."""
        try:
            return await self._page_of(child, question, after, tree)
        except ZoneSilent as error:
            if not error.is_too_large or question.limit <= FEW:
                raise
        return await self._page_of(child, replace(question, limit=FEW), after, tree, is_cut=True)

    async def _page_of(
        self,
        child: KnownChild,
        question: ListQuestion,
        after: str | None,
        tree: TreeRequest,
        *,
        is_cut: bool = False,
    ) -> ZonePage:
        limit = question.limit
        more = [] if after is None else [(AFTER, after)]
        query = urlencode([*question.query, ("limit", str(limit)), *more])
        told = await self._ask(child, f"{question.target}?{query}", question, limit, tree)
        zone, shown = told.get(ZONE), told.get("servers")
        keys = zone.get("keys") if isinstance(zone, Mapping) else None
        if not isinstance(shown, list) or not isinstance(keys, list) or len(keys) != len(shown):
            raise ZoneSilent("the answer is not a list of servers", may_have_arrived=True)
        flavors = zone.get("flavors") if isinstance(zone, Mapping) else None
        rows = child_rows.checked(
            shown[:limit],
            keys[:limit],
            flavors if isinstance(flavors, list) else (),
            question.key_length,
            has_details=question.has_details,
        )
        ids = [each.uuid for each in rows]
        known, own = await self._parts.engine.read(
            lambda tx: (
                {str(each.uuid): each for each in remote.by_uuids(tx, ids)},
                zone_servers.ever_here(tx, ids),
            )
        )
        usable = [
            each
            for each in rows
            if each.uuid not in own and _is_there(child, each, known.get(each.uuid), question)
        ]
        is_partial = isinstance(zone, Mapping) and zone.get("is_partial") is True
        is_cut = is_cut and len(shown) >= limit
        is_cut |= isinstance(zone, Mapping) and zone.get("is_cut") is True
        # A child must not end whole lists early by cutting its pages. A correct child cuts no page
        # to fewer servers than this.
        is_short = is_cut and len(usable) < FEW
        return ZonePage(usable, is_partial or is_short, is_cut and not is_short)

    async def _ask(
        self, child: KnownChild, target: str, question: ListQuestion, count: int, tree: TreeRequest
    ) -> Mapping[str, object]:
        request = ZoneRequest(
            "GET",
            target,
            caller_below(question.caller),
            tree,
            tree.time_left_ms / 1000,
            headers=question.headers,
            answer_bytes_max=zones.bytes_of(count, SERVER_BYTES_MAX),
        )
        answer = await self._parts.client.send(child.zone, child.password, request)
        if answer.status != HTTPStatus.OK:
            raise ZoneSilent.of_status(answer.status)
        told = decoded(answer)
        if not isinstance(told, dict):
            return {}
        links.move(told, f"http://{tree.link_host}", question.address)
        return told


def _may_list(question: ListQuestion, project_id: str) -> bool:
    is_wanted = question.project_id in (None, project_id)
    return is_wanted and question.caller.reaches(project_id)


def _is_there(
    child: KnownChild, row: ListRow, known: ZoneServer | None, question: ListQuestion
) -> bool:
    """Return whether a child may show this row to the caller."""
    told = row.shown.get("tenant_id")
    if known is None:
        # A server without a record here can only be a deleted server.
        is_wanted = not isinstance(told, str) or _may_list(question, told)
        is_deleted = row.shown.get("status", Status.DELETED) == Status.DELETED
        return question.with_deleted and is_deleted and is_wanted
    is_theirs = known.child_id == child.zone.id and told in (None, known.project_id)
    return is_theirs and _may_list(question, known.project_id)
