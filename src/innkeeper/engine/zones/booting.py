"""Boot servers over a tree of zones. A boot batch is the set of all servers of one request.

Always true: one decision says whether the servers of a boot batch stay. Before this decision, their
rows have the state ``BUILDING``. If the zone dies before the decision, it undoes or finishes the
batch after its restart. A batch with fewer servers than ``count_min`` is always undone.

Servers may be on other hosts than in the first plan. A plan consists of entries, each of which is a
child's sealed offer of a host. Stale entries are replaced in further plans, up to a limit. The last
plan leaves out children that built less than half of what they offered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from weakref import WeakValueDictionary

import msgspec
import structlog

from innkeeper.domain.compute import Booted, Definitions
from innkeeper.domain.errors import (
    AlreadyExists,
    Conflict,
    NotFound,
    QuotaExceeded,
    Refusal,
    Unavailable,
    UnknownPlace,
)
from innkeeper.domain.ids import ServerId
from innkeeper.domain.limits import Limits
from innkeeper.domain.zones import ChildEntry, Opened, PlacedOffer
from innkeeper.engine.zones import building, delegation
from innkeeper.engine.zones.building import EntryToBuild, Outcome
from innkeeper.engine.zones.delegation import Delegated
from innkeeper.engine.zones.known_children import KnownChild
from innkeeper.engine.zones.progress import Progress, hostname_of, name_of, of_places
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.engine.zones.tree_request import TreeBoot
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import child_entries
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.entries import EntryExpired, EntryStale
from innkeeper.systems.compute.grouping import groups, hints, reach
from innkeeper.systems.compute.moves import deletions
from innkeeper.systems.compute.servers import zone_servers
from innkeeper.systems.zones import remote

LOG = structlog.get_logger("innkeeper.zones")
TOO_LATE = "Building the servers took too long, so they are being deleted. Try again."


class TreeBooter:
    """Boots servers in this zone and the zones below it. ``limits`` are the default quotas."""

    def __init__(self, tree: ZoneTree, limits: Limits, service_down_time_s: float) -> None:
        self._tree = tree
        self._parts = tree.parts
        self.limits = limits
        self.service_down_time_s = service_down_time_s
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def boot(self, boot: TreeBoot) -> Booted:
        """Boot the servers of a request. Raises the errors of a boot in this zone.

        If the whole tree has too few hosts, the outcome is the same as in a zone without children:
        servers in ERROR.
        """
        group = boot.request.hints.get(hints.GROUP)
        if group is None:
            return await self._boot(boot)
        # Boots of one group take turns, so that they do not plan the same hosts.
        turn = self._turns.setdefault(str(group), asyncio.Lock())
        async with turn:
            return await self._boot(boot)

    async def _boot(self, boot: TreeBoot) -> Booted:
        progress = Progress(list(boot.request.server_ids))
        wanted = list(range(boot.request.count_max))
        try:
            wanted = await self._delegate(boot, wanted, progress)
            if not progress.built.issuperset(wanted):
                await self._attempt(boot, wanted, progress)
        except Refusal:
            await self._undo_all(progress)
            raise
        return await self._decide(boot, progress)

    async def _delegate(self, boot: TreeBoot, wanted: list[int], progress: Progress) -> list[int]:
        """If only one child zone can have hosts, let this child build the servers, without a plan.

        If other zones can have hosts, do nothing. ``wanted`` has the positions of the servers in
        the request. Return the positions of those servers that the quota allows.
        """
        request, parts, now = boot.request, self._parts, self._parts.clock()
        child = await self._tree.only_child(boot)
        if child is None:
            return wanted

        def begin(tx: Tx, context: DecisionContext) -> Delegated | None:
            least = request.count_min
            return delegation.begin(tx, context, request, child, batch_min=least, now=now)

        deciding = parts.engine.decide(begin, request.now, len(wanted))
        begun = await self._tree.unless_removed([child], deciding)
        self._tree.has_hosts = begun is None
        if begun is None:
            return wanted
        progress.begun_at = now
        outcomes = await delegation.place(self._tree, boot, child, begun)
        places: dict[str, int] = {each: place for place, each in enumerate(begun.ids)}
        await self._note(boot, child, outcomes, places, progress)
        if progress.gone and not progress.doubtful:
            # Forget these servers, so that they do not use the quota in the next plan.
            gone, progress.gone = progress.gone, []
            await parts.engine.write(partial(zone_servers.forget, uuids=gone), len(gone))
        if not progress.rows:
            progress.begun_at = None
        return wanted[: len(begun.ids)]

    async def _attempt(self, boot: TreeBoot, wanted: list[int], progress: Progress) -> None:
        """Plan and build. Repeat this for unbuilt servers, up to a maximum number of attempts."""
        request = boot.request
        attempts_max = self._parts.zoning.zone_boot_attempts_max
        for attempt in range(attempts_max):
            built = progress.built
            left = [place for place in wanted if place not in built]
            if not left:
                break
            if progress.rows:
                await self._touch(progress)
            # The last plan leaves out children that built little, so that others can build.
            but = progress.refusing if attempt == attempts_max - 1 else ()
            part = of_places(boot, left, progress)
            try:
                plan = await self._tree.plan(part, but)
                if but and len(plan.offers) < min(len(left), plan.count_allowed):
                    plan = await self._tree.plan(part)
            except (UnknownPlace, QuotaExceeded):
                # An earlier step was not refused, so only the rest of the batch is refused.
                if attempt == 0 and progress.begun_at is None:
                    raise
                break
            # With hints, the definitions are read for each step, because server groups change.
            if not request.hints:
                boot = replace(boot, definitions=await self._tree.planned_definitions_of(boot))
            # The quota may allow fewer servers than the request names.
            left = left[: plan.count_allowed]
            wanted = sorted(progress.built | set(left))
            offers = plan.offers[: len(left)]
            if not offers or len(progress.built) + len(offers) < request.count_min:
                break
            await self._build(boot, dict(zip(left, offers, strict=False)), progress)

    async def boot_entry(self, boot: TreeBoot, opened: Opened, server_id: ServerId) -> Booted:
        """Boot the server of one entry of a child zone. The entry comes from a client.

        Raises :class:`EntryUsed`, :class:`EntryExpired`, :class:`EntryStale`, and
        :class:`Unavailable` if the child does not answer. Raises :class:`Conflict` if another
        request is using the entry.
        """
        place, parts = opened.place, self._parts
        assert isinstance(place, ChildEntry), "the entry is of a child"
        await parts.engine.read(lambda tx: child_entries.demand_unused(tx, server_id))
        if parts.clock() >= opened.expires_at:
            raise EntryExpired(opened.expires_at)
        boot = replace(boot, request=msgspec.structs.replace(boot.request, server_ids=(server_id,)))
        progress = Progress([server_id])
        try:
            await self._build(boot, {0: PlacedOffer(0.0, "", place)}, progress)
        except AlreadyExists as error:
            raise Conflict(child_entries.ENTRY_IN_USE) from error
        if not progress.below:
            await self._give_up(progress)
            if progress.ids != [server_id]:
                raise Unavailable("The zone of this entry does not answer. Ask for another plan.")
            raise EntryStale("The child zone could not use the entry.")
        now, until = parts.clock(), opened.expires_at
        if not await parts.engine.write(lambda tx: child_entries.settle(tx, server_id, until, now)):
            await self._undo_all(progress)
            raise Unavailable(TOO_LATE)
        return Booted(boot.request.batch_id, (server_id,))

    async def _touch(self, progress: Progress) -> None:
        """Keep the repair from deciding this batch.

        Raises :class:`Unavailable` if it is decided already.
        """
        rows, now = progress.rows, self._parts.clock()
        if not await self._parts.engine.write(lambda tx: remote.touch(tx, rows, now), len(rows)):
            raise Unavailable(TOO_LATE)

    async def _build(
        self, boot: TreeBoot, offers: Mapping[int, PlacedOffer], progress: Progress
    ) -> None:
        """Build servers in all zones at once, and note in ``progress`` which servers are built."""
        own = [place for place, each in offers.items() if not isinstance(each.place, ChildEntry)]
        by_child: dict[str, dict[int, str]] = {}
        for place, each in offers.items():
            if isinstance(each.place, ChildEntry):
                by_child.setdefault(each.place.child_uuid, {})[place] = each.place.sealed
        children = await self._tree.eligible_children()
        below = [(children[uuid], some) for uuid, some in by_child.items() if uuid in children]
        if below:
            made = await self._tree.definitions_of(boot)
            if not await self._begin(boot, below, made, progress):
                return
            await building.all_ended(
                self._build_own(boot, own, progress),
                *(self._build_below(boot, made, child, some, progress) for child, some in below),
            )
        else:
            await self._build_own(boot, own, progress)

    async def _begin(
        self,
        boot: TreeBoot,
        below: Sequence[tuple[KnownChild, Mapping[int, str]]],
        made: Definitions,
        progress: Progress,
    ) -> bool:
        """Record servers before children are asked. Return false if a new plan is needed."""
        request, now = boot.request, self._parts.clock()
        rows = [
            building.begun(
                progress.ids[place], child, request, made, batch_min=request.count_min, now=now
            )
            for child, some in below
            for place in some
        ]

        def begin(tx: Tx) -> bool:
            zone_servers.forget(tx, progress.gone)
            if not reach.admits(tx, request, {each.child_id for each in rows}):
                return False
            zone_servers.begin(tx, rows, self.limits)
            zone_servers.join(tx, reach.group_here(tx, request), rows, self.limits)
            return True

        progress.begun_at = progress.begun_at or now
        asked = [child for child, _ in below]
        writing = self._parts.engine.write(begin, len(rows))
        is_begun = await self._tree.unless_removed(asked, writing)
        if is_begun is not None:
            progress.gone = []
        return is_begun is True

    async def _build_own(self, boot: TreeBoot, places: Sequence[int], progress: Progress) -> None:
        if not places:
            return
        request = of_places(boot, places, progress).request
        request = msgspec.structs.replace(request, is_refused_without_hosts=True)
        try:
            await self._parts.engine.boot(msgspec.structs.replace(request, count_min=len(places)))
        except Conflict as error:
            LOG.info("zone_own_hosts_taken", request_id=request.request_id, reason=error.message)
            return
        progress.own |= set(places)

    async def _build_below(
        self,
        boot: TreeBoot,
        made: Definitions,
        child: KnownChild,
        some: Mapping[int, str],
        progress: Progress,
    ) -> None:
        request = boot.request
        entries = [
            EntryToBuild(
                progress.ids[place],
                sealed,
                name_of(request, place),
                hostname_of(request, place),
                request.launch_index(place),
            )
            for place, sealed in some.items()
        ]
        tree = self._tree.below(boot.hop, self._parts.zoning.zone_request_timeout_s)
        outcomes = await building.build(self._parts.client, child, boot, made, entries, tree)
        places: dict[str, int] = {progress.ids[place]: place for place in some}
        await self._note(boot, child, outcomes, places, progress)

    async def _note(
        self,
        boot: TreeBoot,
        child: KnownChild,
        outcomes: Mapping[str, str],
        places: Mapping[str, int],
        progress: Progress,
    ) -> None:
        """Note which servers a child built, and undo servers with an unknown outcome."""
        request = boot.request
        progress.below |= {places[e] for e, out in outcomes.items() if out == Outcome.BUILT}
        built = sum(out == Outcome.BUILT for out in outcomes.values())
        changed = progress.refusing.add if 2 * built < len(places) else progress.refusing.discard
        changed(child.zone.uuid)
        stale = [each for each, out in outcomes.items() if out == Outcome.STALE]
        doubtful = [each for each, out in outcomes.items() if out == Outcome.UNKNOWN]
        progress.gone += stale
        if stale and hints.GROUP in request.hints:
            # These servers do not exist. The group must not contain them in the next plan.
            await self._parts.engine.write(partial(groups.leave, uuids=stale), len(stale))
        if doubtful:
            for each in doubtful:
                progress.ids[places[each]] = ServerId(self._parts.ids.uuid())
            progress.doubtful += doubtful
            gone = await self.undo(doubtful, is_decided=False)
            progress.doubtful = [each for each in progress.doubtful if each not in gone]
            progress.gone += gone

    async def undo(
        self, ids: Sequence[str], own: Sequence[ServerId] = (), *, is_decided: bool = True
    ) -> list[str]:
        """Undo the servers ``ids`` in children, and delete the servers ``own`` of this zone.

        Return the ids that the children certainly do not have now. A periodic task undoes the
        others. With ``is_decided=False``, the rows of the servers stay.
        """
        parts, down_s = self._parts, self.service_down_time_s
        now = parts.clock()

        # This is one transaction, so that a dying zone does not keep a part of the batch.
        def begin(tx: Tx) -> None:
            remote.begin_undo(tx, ids, now)
            if is_decided:
                remote.decide(tx, ids)
            for uuid in own:
                with suppress(NotFound):
                    deletions.delete(tx, uuid, now, service_down_time_s=down_s, may_override=True)

        await parts.engine.write(begin, len(ids) + len(own))
        rows = await parts.engine.read(lambda tx: remote.by_uuids(tx, ids))
        known = {each.zone.id: each for each in await self._tree.children.every()}
        tree = self._tree.below(None, parts.zoning.zone_request_timeout_s)
        # All children are asked at once, so that several silent children cause only one delay.
        answers = await asyncio.gather(
            *(
                building.undo(parts.client, known[child_id], [each.uuid for each in some], tree)
                for child_id, some in remote.by_child(rows).items()
                if child_id in known and known[child_id].zone.is_enabled
            )
        )
        gone = [uuid for some in answers for uuid in some]
        if gone and is_decided:
            await parts.engine.write(lambda tx: zone_servers.forget(tx, gone), len(gone))
        return gone

    async def _undo_all(self, progress: Progress) -> None:
        if not progress.rows and not progress.own:
            return
        await self.undo(progress.rows, progress.own_ids)

    async def _give_up(self, progress: Progress) -> None:
        """Decide that no server of the batch stays. Repairs settle unknown outcomes."""
        if not progress.others:
            return

        def decide(tx: Tx) -> None:
            remote.decide(tx, progress.doubtful)
            zone_servers.forget(tx, progress.gone)

        await self._parts.engine.write(decide, len(progress.others))

    async def _decide(self, boot: TreeBoot, progress: Progress) -> Booted:
        """Keep the built servers if there are enough of them, or else undo them."""
        request, ids = boot.request, progress.ids
        if progress.built and len(progress.built) >= request.count_min:
            if progress.rows and not await self._keep(progress):
                await self._undo_all(progress)
                raise Unavailable(TOO_LATE)
            return Booted(request.batch_id, tuple(ids[place] for place in sorted(progress.built)))
        await self._undo_all(progress)
        fresh = tuple(ServerId(self._parts.ids.uuid()) for _ in ids)
        # Some zone knows the place, or else the request would have been refused before.
        failed = msgspec.structs.replace(request, server_ids=fresh, may_be_elsewhere=True)
        return await self._parts.engine.boot(failed)

    async def _keep(self, progress: Progress) -> bool:
        """Decide that the servers stay. Return false if the batch was already decided."""
        now, zoning = self._parts.clock(), self._parts.zoning
        rest_s = zoning.zone_select_timeout_s + zoning.zone_request_timeout_s
        if progress.is_kept_anyway(now, rest_s):
            built = remote.BuiltBelow(progress.below_ids, now)
            self._parts.engine.write_later(remote.settle_together, built, len(built.uuids))
            return True

        def keep(tx: Tx) -> bool:
            if not remote.keep(tx, progress.below_ids, progress.others, now):
                return False
            zone_servers.forget(tx, progress.gone)
            return True

        return await self._parts.engine.write(keep, len(progress.rows))
