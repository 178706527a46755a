"""Place servers for a zone parent that asks without a plan.

A parent does so if only this zone can have hosts for the servers.

Always true: this zone builds at least the request's minimum number of servers, or none, as far as
the outcomes are known. The id of a request is accepted only once, even if nothing is built. If this
zone knows the id of a server already, it does not build the server again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

import msgspec

from innkeeper.domain.errors import AlreadyExists, Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zones import ChildEntry, EntryBoot, PlacedOffer
from innkeeper.engine.zones import delegation
from innkeeper.engine.zones.building import EntryToBuild, Outcome
from innkeeper.engine.zones.delegation import Delegated
from innkeeper.engine.zones.known_children import KnownChild
from innkeeper.engine.zones.progress import hostname_of, name_of
from innkeeper.engine.zones.serving import ParentRequests, own_entry
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.engine.zones.tree_request import TreeBoot
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.servers import servers, zone_servers
from innkeeper.systems.zones import parents, remote

Begun = Delegated | Collection[str] | None
"""The recorded servers, or the reason why nothing was recorded: the ids that this zone knows
already, an empty collection for a refused request, or ``None`` if this zone has hosts of its
own."""


class ServerPlacer:
    """Places servers for zone parents."""

    def __init__(self, tree: ZoneTree, parent_requests: ParentRequests) -> None:
        self._tree = tree
        self._parts = tree.parts
        self._parent_requests = parent_requests

    async def place(self, boot: TreeBoot) -> dict[str, str]:
        """Build the servers of a request. Return the outcome for each server's id.

        Raises :class:`Unauthenticated` if the parent's request was accepted earlier.
        """
        if not await self._tree.asked(boot.hop):
            return await self._place_here(boot)
        child = await self._tree.only_child(boot)
        outcomes = None if child is None else await self._delegate(boot, child)
        return await self._place_by_plan(boot) if outcomes is None else outcomes

    async def _place_here(self, boot: TreeBoot) -> dict[str, str]:
        request, ids = boot.request, boot.request.server_ids
        known: set[str] = set()

        def admit(tx: Tx, is_repeat: bool) -> Collection[str]:
            known.clear()
            known.update(_admitted(boot, tx, is_repeat=is_repeat))
            return known

        answers = await self._parts.engine.boot_entries(request, admit)
        if known:
            return await self._outcomes_of_known(boot)
        return {each: Outcome.BUILT if each in answers else Outcome.STALE for each in ids}

    async def _outcomes_of_known(self, boot: TreeBoot) -> dict[str, str]:
        """Return the outcomes of a request with ids that this zone knows already."""
        ids, project_id = boot.request.server_ids, boot.request.project_id
        alive = await self._parts.engine.read(lambda tx: servers.alive(tx, list(ids)))
        built = {each.uuid for each in alive if each.project_id == project_id}
        # The parent undoes servers with an unknown outcome.
        return {each: Outcome.BUILT if each in built else Outcome.UNKNOWN for each in ids}

    async def _delegate(self, boot: TreeBoot, child: KnownChild) -> dict[str, str] | None:
        """Let the only child build the servers.

        Return ``None`` if this zone has hosts of its own.
        """
        request, parts = boot.request, self._parts
        ids, now = request.server_ids, parts.clock()

        def begin(tx: Tx, context: DecisionContext) -> Begun:
            if context.follower.table.host_count:
                return None
            if known := _admitted(boot, tx, is_repeat=False):
                return known
            try:
                # The minimum is 0 here, because the zone that got the user's request decides about
                # the batch.
                return delegation.begin(tx, context, request, child, batch_min=0, now=now)
            except AlreadyExists:
                raise
            except Refusal:
                # The transaction still accepts the id of the request, so that a late copy builds
                # nothing.
                return ()

        deciding = parts.engine.decide(begin, request.now, len(ids))
        begun = await self._tree.unless_removed([child], deciding)
        self._tree.has_hosts = begun is None
        if begun is None:
            return None
        if not begun:
            return dict.fromkeys(ids, Outcome.STALE)
        if not isinstance(begun, Delegated):
            return await self._outcomes_of_known(boot)
        outcomes = await delegation.place(self._tree, boot, child, begun)
        await self._parent_requests.record(outcomes)
        return dict.fromkeys(ids, Outcome.STALE) | outcomes

    async def _place_by_plan(self, boot: TreeBoot) -> dict[str, str]:
        """Build the servers on hosts of this zone and of the zones below it, with a plan."""
        request, parts = boot.request, self._parts
        fresh = tuple(ServerId(parts.ids.uuid()) for _ in request.server_ids)
        try:
            again = msgspec.structs.replace(request, server_ids=fresh, count_min=1)
            plan = await self._tree.plan(replace(boot, request=again))
            offers: Sequence[PlacedOffer] = plan.offers
        except Refusal:
            offers = ()
        if len(offers) < request.count_min:
            # Accept the id of the request all the same, so that a late copy builds nothing.
            await parts.engine.write(partial(_admitted, boot, is_repeat=False))
            return dict.fromkeys(request.server_ids, Outcome.STALE)
        own: list[EntryBoot] = []
        below: dict[str, list[EntryToBuild]] = {}
        until = request.now + timedelta(seconds=parts.zoning.build_plan_lifetime_s)
        for index, offer in enumerate(offers[: len(fresh)]):
            wanted = _entry(boot, index, offer)
            if isinstance(offer.place, ChildEntry):
                below.setdefault(offer.place.child_uuid, []).append(wanted)
            else:
                own.append(own_entry(wanted, offer.place, until))
        return await self._parent_requests.build_opened(boot, request.server_ids, own, below)


def _entry(boot: TreeBoot, index: int, offer: PlacedOffer) -> EntryToBuild:
    request = boot.request
    sealed = offer.place.sealed if isinstance(offer.place, ChildEntry) else ""
    name, hostname = name_of(request, index), hostname_of(request, index)
    return EntryToBuild(request.server_ids[index], sealed, name, hostname, index)


def _admitted(boot: TreeBoot, tx: Tx, *, is_repeat: bool) -> set[str]:
    """Accept the id of a parent's request. Return the ids of its servers that are known here."""
    hop, ids = boot.hop, boot.request.server_ids
    assert hop is not None, "only zone parents send this request"
    parents.spend(tx, hop, is_repeat=is_repeat)
    below = {str(each.uuid) for each in remote.by_uuids(tx, ids)}
    return {*zone_servers.ever_here(tx, ids), *below, *remote.forbidden(tx, ids)}
