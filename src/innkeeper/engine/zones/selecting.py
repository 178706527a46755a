"""Ask all child zones at once to offer hosts, with one deadline.

Always true: if a child is dead, slow, looping or lying, the plan lacks only this child's offers.
Each child is asked only once, however many servers are wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

import msgspec
import structlog

from innkeeper.clients import zones
from innkeeper.clients.zone_wire import ZoneSilent
from innkeeper.clients.zones import ZoneClient, ZoneRequest
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.zone_tree import TreeRequest
from innkeeper.domain.zones import PlacedOffer
from innkeeper.engine.zones.known_children import KnownChild
from innkeeper.systems.zones import merging
from innkeeper.systems.zones.merging import UnusableOffers

LOG = structlog.get_logger("innkeeper.zones")
SELECT = "/zones/select"
OFFER_BYTES_MAX = 4096
"""The maximum size of an offer in bytes. An entry through eight zones has less than 2500
characters."""
MARGIN = 0.8
"""A child gets this share of the remaining time for its own children."""
REFUSALS = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT})
"""Statuses with which a child answers that it cannot serve the request. Such a child does not count
as missing."""


@dataclass(frozen=True, slots=True)
class SelectQuestion:
    """A question to children. ``headers`` have the microversion of the body."""

    body: Mapping[str, object]
    headers: Mapping[str, str]
    caller: RequestContext
    count: int
    tree: TreeRequest


@dataclass(frozen=True, slots=True)
class ChildOffers:
    """The answer of one child.

    With ``is_partial``, a zone below the child did not answer. With ``is_refusing``, the child
    cannot serve the request, for example because it lacks the availability zone.
    """

    offers: Sequence[PlacedOffer] = ()
    is_partial: bool = False
    is_refusing: bool = False


async def ask_all(
    client: ZoneClient,
    asked: Sequence[KnownChild],
    question: SelectQuestion,
    note_late: Callable[[KnownChild], None],
) -> tuple[list[ChildOffers], list[str]]:
    """Ask children for offers. Return the answers, and the names of children that gave none.

    ``note_late`` is called for each child that did not answer in time.
    """
    tree = question.tree
    wanted = [each for each in asked if each.zone.state.zone_id not in tree.visited]
    answers = await asyncio.gather(
        *(_ask(client, each, question) for each in wanted), return_exceptions=True
    )
    offered: list[ChildOffers] = []
    missing: list[str] = []
    for child, answer in zip(wanted, answers, strict=True):
        if isinstance(answer, ChildOffers):
            offered.append(answer)
        elif isinstance(answer, ZoneSilent | UnusableOffers):
            LOG.warning("zone_select_failed", zone=child.zone.name, reason=str(answer))
            missing.append(child.zone.name)
            if isinstance(answer, ZoneSilent) and answer.is_late:
                note_late(child)
        else:
            raise answer
    return offered, missing


async def _ask(client: ZoneClient, child: KnownChild, question: SelectQuestion) -> ChildOffers:
    tree = replace(question.tree, time_left_ms=int(question.tree.time_left_ms * MARGIN))
    request = ZoneRequest(
        "POST",
        SELECT,
        question.caller,
        tree,
        question.tree.time_left_ms / 1000,
        msgspec.json.encode(question.body),
        question.headers,
        zones.bytes_of(question.count, OFFER_BYTES_MAX),
    )
    answer = await client.send(child.zone, child.password, request)
    if answer.status in REFUSALS:
        LOG.info("zone_select_refused", zone=child.zone.name, status=answer.status)
        return ChildOffers(is_refusing=True)
    if answer.status != HTTPStatus.OK:
        raise ZoneSilent.of_status(answer.status)
    offers, is_partial = merging.offers_of_child(
        child.zone, answer.body, question.count, tree.hops_left
    )
    return ChildOffers(offers, is_partial)
