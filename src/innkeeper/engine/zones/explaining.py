"""Explain a boot over the tree: what each zone below would offer, and which filters removed hosts.

Always true: a child tells counts, weights, and the names of zones and filters, but nothing about
single hosts. A child explains only if its policy allows explanations for the roles that its
administrators granted to this zone.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated

import msgspec
import structlog
from msgspec import Meta

from innkeeper.clients.zone_wire import ZoneSilent
from innkeeper.clients.zones import ZoneRequest
from innkeeper.domain.converters import converter_to
from innkeeper.domain.zone_tree import ChildZone, TreeRequest
from innkeeper.engine.zones.known_children import KnownChild, decoded
from innkeeper.engine.zones.selecting import MARGIN, REFUSALS
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.engine.zones.tree_request import TreeBoot
from innkeeper.systems.zones import merging

LOG = structlog.get_logger("innkeeper.zones")
EXPLAIN = "/os-explain"
ANSWER_BYTES_MAX = 2 * 2**20
LEVELS_MAX = 8
"""The maximum number of hops that the settings allow."""
SHOWN_MAX = 1000
"""A zone's explanation has at most this many filters, this many zones and this many servers."""
Name = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
"""A name without control characters, because operators print it."""
Count = Annotated[int, Meta(ge=0, le=2**53)]


class RemovedHosts(msgspec.Struct, frozen=True):
    """The number of a zone's hosts that a filter removed; ``None`` if some hosts are dedicated."""

    filter: Name
    removed: Count | None = None


class ExplainedServer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The place of one server: its weight, and the zones on the path to it, from the top."""

    weight: float
    item: Name
    zones: Annotated[tuple[Name, ...], Meta(max_length=LEVELS_MAX)] = ()


class ZoneExplanation(msgspec.Struct, frozen=True):
    """The explanation that a zone gives to its zone parent. It counts the zone's own hosts.

    ``name`` is the zone's name for itself, as in ``GET /zones/info``. ``room`` is the number of
    servers for which the zone itself has hosts. ``chosen`` has the best places in the zone and
    below it, at most ``SHOWN_MAX``.
    """

    name: Name
    hosts: Count | None
    candidates: Count | None
    room: Count
    removed: Annotated[tuple[RemovedHosts, ...], Meta(max_length=SHOWN_MAX)] = ()
    chosen: Annotated[tuple[ExplainedServer, ...], Meta(max_length=SHOWN_MAX)] = ()
    zones: Annotated[tuple[ZoneBelow, ...], Meta(max_length=SHOWN_MAX)] = ()


class ZoneBelow(msgspec.Struct, frozen=True):
    """A child zone in an explanation. It has an ``explanation`` only if it answered ``EXPLAINED``.

    ``zone`` is the name that this zone's administrators gave to the child. A zone parent does not
    get this name, but only the name in the child's explanation.
    """

    answer: Annotated[str, Meta(max_length=16)]
    zone: Name | None = None
    explanation: ZoneExplanation | None = None


EXPLAINED, REFUSED, SILENT = "explained", "refused", "silent"
"""The answers of a child that was asked to explain. A zone that cannot serve the request also
refuses to explain it."""


class _Told(msgspec.Struct, frozen=True):
    explanation: ZoneExplanation


_told = converter_to(_Told)


@dataclass(frozen=True, slots=True)
class TreeExplanation:
    """The explanations of the zones below, and the best places of the whole tree, best first."""

    zones: Sequence[ZoneBelow]
    chosen: Sequence[ExplainedServer]


async def explain(
    tree: ZoneTree, boot: TreeBoot, request: TreeRequest, own: Sequence[ExplainedServer]
) -> TreeExplanation:
    """Ask the children that a plan would ask. ``own`` has the best places of this zone.

    An explanation for a zone parent has the children's own names. Raises :class:`Invalid` if the
    request names an unknown object.
    """
    within = await tree.reach_of(boot.request)
    asked = [each for each in await tree.asked(boot.hop) if within.includes(each.zone.id)]
    missed = [each for each in await tree.missed(boot.hop) if within.includes(each.zone.id)]
    asked = [each for each in asked if each.zone.state.zone_id not in request.visited]
    is_for_parent = boot.hop is not None
    below: list[ZoneBelow] = [_below(each, SILENT) for each in missed]
    lists: list[Sequence[ExplainedServer]] = []
    if asked:
        made = replace(await tree.definitions_of(boot), group=within.group)
        body = msgspec.json.encode(boot.select_body(made, boot.request.count_max))
        sent = ZoneRequest(
            "POST",
            EXPLAIN,
            boot.caller_below(),
            replace(request, time_left_ms=int(request.time_left_ms * MARGIN)),
            request.time_left_ms / 1000,
            body,
            boot.headers,
            ANSWER_BYTES_MAX,
        )
        for child, told in zip(
            asked, await asyncio.gather(*(_ask(tree, each, sent) for each in asked)), strict=True
        ):
            below.append(told)
            if told.explanation is not None:
                name = told.explanation.name if is_for_parent else child.zone.name
                some = told.explanation.chosen
                lists.append([_counted(child.zone, name, each) for each in some])
    merge = merging.together if within.stay_together else merging.merged
    chosen = merge(own, lists, boot.request.count_max)
    if is_for_parent:
        below = [msgspec.structs.replace(each, zone=None) for each in below]
    return TreeExplanation(below, chosen)


def _below(child: KnownChild, answer: str, told: ZoneExplanation | None = None) -> ZoneBelow:
    return ZoneBelow(answer, child.zone.name, told)


async def _ask(tree: ZoneTree, child: KnownChild, sent: ZoneRequest) -> ZoneBelow:
    name = child.zone.name
    try:
        answer = await tree.parts.client.send(child.zone, child.password, sent)
        if answer.status in REFUSALS:
            return _below(child, REFUSED)
        if answer.status != HTTPStatus.OK:
            raise ZoneSilent.of_status(answer.status)
        told = _told(decoded(answer)).explanation
    except (msgspec.ValidationError, RecursionError, ZoneSilent) as error:
        LOG.warning("zone_explain_failed", zone=name, reason=str(error)[:200])
        return _below(child, SILENT)
    weights = [each.weight for each in told.chosen]
    is_usable = all(math.isfinite(each) and abs(each) <= merging.WEIGHT_MAX for each in weights)
    if not is_usable or _is_deep(told):
        LOG.warning("zone_explain_failed", zone=name, reason="the explanation is unusable")
        return _below(child, SILENT)
    return _below(child, EXPLAINED, told)


def _is_deep(told: ZoneExplanation) -> bool:
    """Return whether an explanation has zones on more levels than a tree can have."""
    level = [told]
    for _ in range(LEVELS_MAX):
        level = [e.explanation for each in level for e in each.zones if e.explanation is not None]
    return bool(level)


def _counted(child: ChildZone, name: str, server: ExplainedServer) -> ExplainedServer:
    """Return a server's place as this zone shows it, made from the place that the child shows.

    The weight is converted to this zone's weights. The child's name is the first zone on the path.
    """
    # The offset is subtracted, because it is meant for the weights of offers, of which the lowest
    # wins.
    weight = child.weight_scale * server.weight - child.weight_offset
    return ExplainedServer(weight, server.item, (name, *server.zones)[:LEVELS_MAX])
