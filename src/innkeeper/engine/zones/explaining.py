"""Explain a boot over the tree: what each zone below would offer, and why not more hosts.

Always true: a child tells counts, weights, and the names of zones and filters. It tells nothing
about single hosts. The child's administrators decide whether the child explains anything: its
policy must allow explanations for the roles that they granted to this zone.
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
"""The greatest number of hops that the settings allow."""
SHOWN_MAX = 1000
"""The maximum number of filters, of zones and of servers in the explanation of one zone."""
Name = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
"""A name without control characters, because operators print it."""
Count = Annotated[int, Meta(ge=0, le=2**53)]


class RemovedHosts(msgspec.Struct, frozen=True):
    """How many hosts of a zone a filter removed; ``None`` if some hosts there are dedicated."""

    filter: Name
    removed: Count | None = None


class ExplainedServer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The weight of one server's place, and the zones on the way there, from the top."""

    weight: float
    item: Name
    zones: Annotated[tuple[Name, ...], Meta(max_length=LEVELS_MAX)] = ()


class ZoneExplanation(msgspec.Struct, frozen=True):
    """What a zone tells its zone parent. The counts are of the zone's own hosts.

    ``name`` is what the zone calls itself, as in ``GET /zones/info``. ``room`` is the number of
    servers for which the zone itself has hosts. ``chosen`` are the best places in the zone and
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
    """A child zone in an explanation. Only a child that ``EXPLAINED`` has an explanation.

    ``zone`` is the name by which this zone's administrators know the child. A zone parent does not
    get this name: it gets the name that the child's explanation contains.
    """

    answer: Annotated[str, Meta(max_length=16)]
    zone: Name | None = None
    explanation: ZoneExplanation | None = None


EXPLAINED, REFUSED, SILENT = "explained", "refused", "silent"
"""What a child did when it was asked to explain. A zone that cannot serve the request refuses to
explain it."""


class _Told(msgspec.Struct, frozen=True):
    explanation: ZoneExplanation


_told = converter_to(_Told)


@dataclass(frozen=True, slots=True)
class TreeExplanation:
    """What the zones below explain, and the best places of the whole tree, best first."""

    zones: Sequence[ZoneBelow]
    chosen: Sequence[ExplainedServer]


async def explain(
    tree: ZoneTree, boot: TreeBoot, request: TreeRequest, own: Sequence[ExplainedServer]
) -> TreeExplanation:
    """Ask the children that a plan would ask. ``own`` has the best places of this zone.

    A zone parent gets the names by which the children call themselves. Raises :class:`Invalid` for
    an unknown object.
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
    """Return whether an explanation has zones at more levels than a tree can have."""
    level = [told]
    for _ in range(LEVELS_MAX):
        level = [e.explanation for each in level for e in each.zones if e.explanation is not None]
    return bool(level)


def _counted(child: ChildZone, name: str, server: ExplainedServer) -> ExplainedServer:
    """Return a child's place with this zone's offset and scale, and the child's name."""
    # The offset is for weights as zones send them, where the lower weight wins.
    weight = child.weight_scale * server.weight - child.weight_offset
    return ExplainedServer(weight, server.item, (name, *server.zones)[:LEVELS_MAX])
