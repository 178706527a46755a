"""One process's access to the tree of zones below this zone.

Always true: this zone works as before if no child answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from innkeeper.clients.zone_wire import ZoneSilent
from innkeeper.clients.zones import ZoneClient
from innkeeper.domain.compute import BootRequest, Definitions
from innkeeper.domain.errors import AlreadyExists, UnknownPlace
from innkeeper.domain.ids import Clock, IdSource
from innkeeper.domain.slices import Zoning
from innkeeper.domain.zone_tree import ChildZone, Hop, TreeRequest
from innkeeper.domain.zones import PlacedOffer, TreePlan, ZonePlan
from innkeeper.engine.engine import Engine
from innkeeper.engine.lateness import LATE_SHARE
from innkeeper.engine.zones import known_children, selecting
from innkeeper.engine.zones.known_children import KnownChild, KnownChildren, tree_of
from innkeeper.engine.zones.remembered import RememberedDefinitions
from innkeeper.engine.zones.selecting import SelectQuestion
from innkeeper.engine.zones.tree_request import TreeBoot
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import definitions, dry_run
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.request_resolver import RequestResolver
from innkeeper.systems.compute.grouping import reach
from innkeeper.systems.compute.grouping.reach import Reach
from innkeeper.systems.zones import merging, sealing
from innkeeper.systems.zones.children import Reached
from innkeeper.systems.zones.sealing import Sealer

Written = TypeVar("Written")


@dataclass(frozen=True, slots=True)
class ZoneParts:
    """The parts of a tree. ``zone_id`` is the random id of this zone itself."""

    engine: Engine
    client: ZoneClient
    children: KnownChildren
    sealer: Sealer
    zoning: Zoning
    zone_id: str
    ids: IdSource
    clock: Clock


@dataclass(frozen=True, slots=True)
class OwnPlan:
    """The plan of this zone alone.

    ``count`` is the number of servers that the quota allows.
    """

    offers: Sequence[PlacedOffer]
    count: int
    definitions: Definitions


class ZoneTree:
    """The child zones of this zone.

    ``has_hosts`` tells whether this zone had hosts of its own at the last look. If a child was
    removed during a request, ``has_hosts`` is also true until the next plan.
    """

    def __init__(self, parts: ZoneParts) -> None:
        self.parts = parts
        self.children = parts.children
        self.has_hosts = False
        self._remembered = RememberedDefinitions()

    @property
    def routes(self) -> bool:
        """Whether this zone boots servers in child zones, and forwards requests for them."""
        return self.parts.zoning.enable_zone_routing

    def hops_left(self, hop: Hop | None) -> int:
        """Return how many hops (from a zone to a child zone) a request may still make."""
        if not self.routes:
            return 0
        # A parent must not make this zone ask more levels than its own setting allows.
        most = self.parts.zoning.zone_hops_max
        return most if hop is None else min(hop.tree.hops_left, most)

    def below(self, hop: Hop | None, timeout_s: float) -> TreeRequest:
        """Return the facts that child zones need about a request."""
        parts = self.parts
        own = tree_of(parts.zoning, parts.zone_id, parts.ids, timeout_s)
        if hop is None:
            return own
        return replace(
            own,
            request_id=hop.tree.request_id,
            visited=(*hop.tree.visited, parts.zone_id),
            hops_left=self.hops_left(hop) - 1,
            time_left_ms=min(own.time_left_ms, hop.tree.time_left_ms),
        )

    async def contact(self, api_url: str, username: str, password: str) -> Reached:
        """Contact a child with an address and login that are not stored yet.

        Raises :class:`ZoneSilent`.
        """
        parts = self.parts
        moment = parts.clock()
        zone = ChildZone(0, "", "", api_url, username, 0.0, 1.0, True, False, moment, moment)
        timeout_s = parts.zoning.zone_request_timeout_s
        try:
            reached = await known_children.reach(
                parts.client, KnownChild(zone, password), self.below(None, timeout_s), timeout_s
            )
        finally:
            await parts.client.forget(zone)
        if reached.zone_id == parts.zone_id:
            raise ZoneSilent("the address is that of this zone itself", may_have_arrived=True)
        return reached

    async def asked(self, hop: Hop | None) -> list[KnownChild]:
        """Return the children that a plan may ask."""
        if self.hops_left(hop) <= 0:
            return []
        found = await self.eligible_children()
        return [each for each in found.values() if not self.children.is_late(each.zone)]

    async def eligible_children(self) -> dict[str, KnownChild]:
        """Return the children that may get new servers now, by id."""
        every = await self.children.every()
        return {each.zone.uuid: each for each in every if each.zone.takes_servers}

    async def unless_removed(
        self, asked: Collection[KnownChild], written: Awaitable[Written]
    ) -> Written | None:
        """Return the result of ``written``, or ``None`` if a child was removed meanwhile.

        Raises :class:`AlreadyExists` if a server is known already. A removed child causes the same
        error, so the children are read again to distinguish the two.
        """
        try:
            return await written
        except AlreadyExists:
            self.children.forget()
            known = {each.zone.id for each in await self.children.every()}
            if known.issuperset(each.zone.id for each in asked):
                raise
            return None

    async def only_child(self, boot: TreeBoot) -> KnownChild | None:
        """Return the only child that may have hosts for a request, or ``None`` if a plan is needed.

        This zone may have got hosts of its own since its last plan. Therefore, the transaction that
        begins the request checks again whether this zone has hosts.
        """
        request, hop = boot.request, boot.hop
        names_place = request.availability_zone is not None or request.forced_host is not None
        if self.has_hosts or request.hints or names_place:
            return None
        visited = (self.parts.zone_id, *(() if hop is None else hop.tree.visited))
        found = [e for e in await self.asked(hop) if e.zone.state.zone_id not in visited]
        if len(found) != 1 or self.children.needs_plans(found[0].zone):
            return None
        return found[0]

    async def missed(self, hop: Hop | None) -> list[KnownChild]:
        """Return the children that plans leave out because they do not answer."""
        if self.hops_left(hop) <= 0:
            return []
        return [
            each
            for each in await self.children.every()
            if each.zone.is_missed or (each.zone.takes_servers and self.children.is_late(each.zone))
        ]

    async def reach_of(self, request: BootRequest) -> Reach:
        """Return the zones that a plan for a request may use."""
        if not request.is_across_zones:
            return reach.THIS_ZONE
        if not request.hints and request.forced_host is None:
            return reach.EVERYWHERE
        return await self.parts.engine.read(lambda tx: reach.of(tx, request))

    async def definitions_of(self, boot: TreeBoot) -> Definitions:
        """Return the objects that a request names.

        Raises :class:`Invalid` for an unknown object.
        """
        request = boot.request
        if boot.definitions is not None:
            return boot.definitions
        if request.definitions is not None and not request.hints:
            return request.definitions
        return await self.parts.engine.read(lambda tx: definitions.of(tx, request))

    async def planned_definitions_of(self, boot: TreeBoot) -> Definitions:
        """Return the same as :meth:`definitions_of`, for a request that has just been planned."""
        if boot.definitions is None and (found := self._remembered.get(boot.request)) is not None:
            return found
        return await self.definitions_of(boot)

    async def plan(self, boot: TreeBoot, but: Collection[str] = ()) -> TreePlan:
        """Return the best offers of this zone and the zones below it, best first.

        Children whose ids are in ``but`` are not asked. Raises the errors of a plan in this zone. A
        place that only a child knows is not an error.
        """
        tree = self.below(boot.hop, self.parts.zoning.zone_select_timeout_s)
        within = await self.reach_of(boot.request)
        every = await self.asked(boot.hop)
        asked = [
            each for each in every if each.zone.uuid not in but and within.includes(each.zone.id)
        ]
        if within.is_near_servers and not all(within.includes(each.zone.id) for each in every):
            # A zone that is not asked may know the place. So an unknown place is not an error.
            request = msgspec.structs.replace(boot.request, may_be_elsewhere=True)
            boot = replace(boot, request=request)
        missed = [
            each.zone.name for each in await self.missed(boot.hop) if within.includes(each.zone.id)
        ]
        if not asked:
            alone = await self._own(boot, tree)
            return TreePlan(tuple(alone.offers), alone.count, tuple(missed), bool(missed))
        known = None if boot.definitions is not None else self._remembered.get(boot.request)
        made = replace(known or await self.definitions_of(boot), group=within.group)
        question = SelectQuestion(
            boot.select_body(made, boot.request.count_max),
            boot.headers,
            boot.caller_below(),
            boot.request.count_max,
            tree,
        )
        (offered, missing), own = await asyncio.gather(
            selecting.ask_all(self.parts.client, asked, question, self._note_late(tree)),
            self._own_or_unknown(boot, tree),
        )
        if isinstance(own, UnknownPlace):
            if all(each.is_refusing for each in offered):
                raise own
            own = await self._count_allowed(boot, tree)
        if known not in (None, own.definitions):
            # The definitions have changed since, so the offers of the children are outdated.
            return await self.plan(replace(boot, definitions=own.definitions), but)
        below = [each.offers for each in offered]
        merge = merging.together if within.stay_together else merging.merged
        merged = merge(own.offers, below, own.count)
        missing += missed
        is_partial = bool(missing) or any(each.is_partial for each in offered)
        return TreePlan(tuple(merged), own.count, tuple(missing), is_partial)

    def _note_late(self, tree: TreeRequest) -> Callable[[KnownChild], None]:
        zoning = self.parts.zoning
        # If a zone parent allowed little time, the child must not count as late for other requests.
        had_time = tree.time_left_ms >= LATE_SHARE * zoning.zone_select_timeout_s * 1000

        def note(child: KnownChild) -> None:
            if had_time:
                self.children.note_late(child.zone, self.parts.clock())

        return note

    async def _own(self, boot: TreeBoot, tree: TreeRequest) -> OwnPlan:
        """Plan in this zone only."""
        engine, request = self.parts.engine, boot.request

        def plan(tx: Tx, context: DecisionContext) -> tuple[ZonePlan, Definitions, bool]:
            resolved = RequestResolver(tx, context, [request]).resolve(request)
            found = definitions.of_found(tx, request, resolved.flavor, resolved.image)
            if not context.follower.table.host_count:
                return ZonePlan((), resolved.request.count_max), found, False
            return dry_run.plan_resolved(tx, context, resolved), found, True

        made, found, self.has_hosts = await engine.plan(plan, request.now)
        if request.definitions is None:
            # Definitions of a zone parent are not remembered, because they come with each request.
            self._remembered.note(request, found)
        offers = sealing.planned_offers(made.servers, self.parts.sealer, tree.request_id)
        return OwnPlan(offers, made.count_allowed, found)

    async def _count_allowed(self, boot: TreeBoot, tree: TreeRequest) -> OwnPlan:
        """Return a plan without offers, with the number of servers that the quota allows."""
        request = msgspec.structs.replace(boot.request, may_be_elsewhere=True)
        own = await self._own(replace(boot, request=request), tree)
        return replace(own, offers=())

    async def _own_or_unknown(self, boot: TreeBoot, tree: TreeRequest) -> OwnPlan | UnknownPlace:
        try:
            return await self._own(boot, tree)
        except UnknownPlace as error:
            return error
