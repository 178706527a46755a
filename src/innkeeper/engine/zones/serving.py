"""Carry out requests of zone parents: build the servers of entries, and undo servers.

An entry is a sealed offer of a host for one server, which this zone or a child zone made.

Always true: an entry for a host of this zone is claimed here. An entry for a host of a child is
sent to that child. A repeated request has the same outcome. A parent that may no longer write can
undo only servers that were begun a short time ago.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import msgspec

from innkeeper.domain.compute import Booted, BootRequest, Definitions
from innkeeper.domain.errors import QuotaExceeded, Refusal, TooManyAttempts, Unavailable
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import Initiator
from innkeeper.domain.zone_tree import HeldServer, ZoneParent, ZoneServer
from innkeeper.domain.zones import ChildEntry, Destination, EntryBoot
from innkeeper.engine.commands import Admit
from innkeeper.engine.zones import building
from innkeeper.engine.zones.allowances import Allowances
from innkeeper.engine.zones.booting import TreeBooter
from innkeeper.engine.zones.building import EntryToBuild, Outcome
from innkeeper.engine.zones.known_children import KnownChild
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.engine.zones.tree_request import TreeBoot
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import entries as plan_entries
from innkeeper.systems.compute.boot.entries import EntryUsed
from innkeeper.systems.compute.grouping import groups, hints, reach
from innkeeper.systems.compute.moves import deletions
from innkeeper.systems.compute.servers import servers, zone_servers
from innkeeper.systems.zones import audit, parents, remote
from innkeeper.systems.zones.sealing import NotOurs

UNDONE_MAX = 100_000
"""A zone parent may ask this zone to undo at most this many ids, within the time for which this
zone remembers unknown ids. A repair of the parent names at most a thousand ids in each round.
"""
TOO_MANY_UNDONE = "The zone parent has named too many servers to undo. Ask again later."
RETRY_AFTER_S = 60


@dataclass(frozen=True, slots=True)
class PartBelow:
    """A parent's entries for one child zone, and the rows of the entries' servers."""

    child: KnownChild
    definitions: Definitions
    entries: Sequence[EntryToBuild]
    rows: Sequence[ZoneServer]


class ParentRequests:
    """Serves the requests of zone parents."""

    def __init__(self, tree: ZoneTree, booter: TreeBooter) -> None:
        self._tree = tree
        self._parts = tree.parts
        self._booter = booter
        self._undone = Allowances(UNDONE_MAX, remote.TOMBSTONE_LIFETIME)

    async def build(self, boot: TreeBoot, entries: Sequence[EntryToBuild]) -> dict[str, str]:
        """Build the servers of a parent's entries. Return the outcome for each server's id.

        The first write also accepts the id of the parent's request. Raises :class:`Unauthenticated`
        if the id was accepted earlier.
        """
        own, below = self._opened(boot.request, entries)
        return await self.build_opened(boot, [each.server_id for each in entries], own, below)

    async def build_opened(
        self,
        boot: TreeBoot,
        ids: Sequence[str],
        own: Sequence[EntryBoot],
        below: Mapping[str, Sequence[EntryToBuild]],
    ) -> dict[str, str]:
        """Build the servers of opened entries: ``own`` in this zone, ``below`` in children.

        Return the outcome for each id. Raises the errors of :meth:`build`.
        """
        outcomes = dict.fromkeys(ids, Outcome.STALE)
        admit = partial(_admit, boot, list(outcomes), {each.server_id for each in own})
        parts = await self._parts_below(boot, below)
        if not parts:
            return outcomes | await self._build_own(boot.request, own, admit)

        # All parts share one commit, because a second commit would double the time of a small
        # request.
        def begin(tx: Tx) -> tuple[set[str], list[set[str]]]:
            closed = admit(tx, False)
            return closed, [self._begin(tx, boot.request, each, closed) for each in parts]

        writing = self._parts.engine.write(begin, len(outcomes))
        try:
            written = await self._tree.unless_removed([each.child for each in parts], writing)
        except QuotaExceeded:
            # Accept the id of the request all the same, so that a late copy builds nothing.
            await self._parts.engine.write(lambda tx: admit(tx, False))
            return outcomes
        if written is None:
            # The entries of the removed child are stale now. Build all others.
            return await self.build_opened(boot, ids, own, below)
        closed, begun = written
        builds = [self._build_below(boot, *each) for each in zip(parts, begun, strict=True)]
        if own:
            builds.append(self._build_own(boot.request, own, lambda _, __: closed))
        some = await asyncio.gather(*builds)
        for found in some:
            outcomes |= found
        return outcomes

    async def _parts_below(
        self, boot: TreeBoot, below: Mapping[str, Sequence[EntryToBuild]]
    ) -> list[PartBelow]:
        """Return the usable entries for child zones, with a row for each server."""
        made, now = boot.request.definitions, self._parts.clock()
        if not below or made is None or self._tree.hops_left(boot.hop) <= 0:
            return []
        children = await self._tree.eligible_children()
        return [
            PartBelow(
                children[uuid],
                made,
                entries,
                [
                    # The minimum is 0 here, because the zone that got the user's request decides
                    # about the batch.
                    building.begun(
                        ServerId(each.server_id),
                        children[uuid],
                        boot.request,
                        made,
                        batch_min=0,
                        now=now,
                    )
                    for each in entries
                ],
            )
            for uuid, entries in below.items()
            if uuid in children
        ]

    def _opened(
        self, request: BootRequest, entries: Sequence[EntryToBuild]
    ) -> tuple[list[EntryBoot], dict[str, list[EntryToBuild]]]:
        """Open the entries. Return those for hosts of this zone, and those for each child."""
        scope = plan_entries.scope_of(request)
        own: list[EntryBoot] = []
        below: dict[str, list[EntryToBuild]] = {}
        for each in entries:
            try:
                opened = self._parts.sealer.open(each.sealed, scope)
            except NotOurs:
                continue
            if isinstance(opened.place, ChildEntry):
                inner = replace(each, sealed=opened.place.sealed)
                below.setdefault(opened.place.child_uuid, []).append(inner)
            else:
                own.append(own_entry(each, opened.place, opened.expires_at))
        return own, below

    async def _build_own(
        self, request: BootRequest, entries: Sequence[EntryBoot], admit: Admit
    ) -> dict[str, str]:
        if not entries:
            # A request without usable entries is also accepted only once.
            await self._parts.engine.write(lambda tx: admit(tx, False))
            return {}
        wanted = msgspec.structs.replace(request, entries=tuple(entries))
        answers = await self._parts.engine.boot_entries(wanted, admit)
        outcomes: dict[str, str] = {e: _outcome(e, answer) for e, answer in answers.items()}
        again = [e for e, answer in answers.items() if isinstance(answer, EntryUsed)]
        if again:
            alive = await self._parts.engine.read(lambda tx: servers.alive(tx, again))
            here = {each.uuid for each in alive}
            # A server that was deleted since is not built again.
            outcomes |= {e: Outcome.STALE for e in again if e not in here}
        return outcomes

    async def _build_below(
        self, boot: TreeBoot, part: PartBelow, begun: Collection[str]
    ) -> dict[str, str]:
        """Let a child build the servers ``begun``, whose rows were written."""
        parts = self._parts
        tree = self._tree.below(boot.hop, parts.zoning.zone_request_timeout_s)
        wanted = [each for each in part.entries if each.server_id in begun]
        outcomes = await building.build(
            parts.client, part.child, boot, part.definitions, wanted, tree
        )
        await self.record({each: outcomes[each] for each in begun})
        return outcomes

    async def record(self, outcomes: Mapping[str, str]) -> None:
        """Record the outcomes of servers that a child was asked to build."""
        parts = self._parts
        stale = [each for each, outcome in outcomes.items() if outcome == Outcome.STALE]
        built = [each for each, outcome in outcomes.items() if outcome == Outcome.BUILT]
        if stale:
            await parts.engine.write(partial(zone_servers.forget, uuids=stale), len(stale))
        if built:
            # If this write is lost, the repair finds that the child has the servers.
            known = remote.BuiltBelow(built, parts.clock())
            parts.engine.write_later(remote.settle_together, known, len(built))

    def _begin(
        self, tx: Tx, request: BootRequest, part: PartBelow, without: Collection[str]
    ) -> set[str]:
        """Record servers that a child is about to build. Return the ids that may be built."""
        rows = [each for each in part.rows if each.uuid not in without]
        if not rows:
            return set()
        ids = [each.uuid for each in rows]
        found = remote.by_uuids(tx, ids)
        wanted = request.project_id, part.child.zone.id
        known = {str(each.uuid) for each in found if (each.project_id, each.child_id) == wanted}
        # A parent must not change another server's row by naming this server's id.
        taken = {each.uuid for each in found} - known
        closed = {*remote.forbidden(tx, ids), *taken, *zone_servers.ever_here(tx, ids)}
        fresh = [each for each in rows if each.uuid not in known and each.uuid not in closed]
        if fresh and not reach.admits(tx, request, {part.child.zone.id}):
            return known - closed
        if fresh:
            zone_servers.begin(tx, fresh, self._booter.limits)
            zone_servers.join(tx, reach.group_here(tx, request), fresh, None)
        return {each for each in ids if each not in closed}

    async def undo(
        self, parent: ZoneParent, ids: Sequence[str], initiator: Initiator, now: datetime
    ) -> list[str]:
        """Undo these servers of a parent. Return the ids that are certainly gone.

        A server that its agent has not deleted yet is not gone, so the parent must ask again.
        Raises :class:`TooManyAttempts` if the parent has named too many ids.
        """
        if not self._undone.take(parent.id, len(ids), now):
            raise TooManyAttempts(TOO_MANY_UNDONE, retry_after_s=RETRY_AFTER_S)
        down_s = self._booter.service_down_time_s

        def begin(tx: Tx) -> tuple[list[ServerId], list[str], set[str]]:
            own, below, kept = _of_parent(tx, parent, ids, now)
            deletions.delete_these(tx, own, now, service_down_time_s=down_s, initiator=initiator)
            remote.begin_undo(tx, below, now)
            remote.forbid(tx, [each for each in ids if each not in kept], now)
            return own, below, kept

        own, below, kept = await self._parts.engine.write(begin, len(ids))
        if below:
            await self._booter.undo(below)
        waiting: set[str] = kept | await self._parts.engine.read(
            lambda tx: {
                *(each.uuid for each in servers.alive(tx, own)),
                *(each.uuid for each in remote.by_uuids(tx, below)),
            }
        )
        return [each for each in ids if each not in waiting]

    async def existing(self, parent: ZoneParent, ids: Sequence[str]) -> list[HeldServer]:
        """Return the servers of a parent with these ids, in this zone and the zones below."""
        return await self._parts.engine.read(lambda tx: zone_servers.held(tx, parent.prefix, ids))

    async def page(self, parent: ZoneParent, after: str | None, limit: int) -> list[HeldServer]:
        """Return the next servers of a parent, in this zone and the zones below, ordered by id."""
        return await self._parts.engine.read(
            lambda tx: zone_servers.held_page(tx, parent.prefix, after, limit)
        )


def _of_parent(
    tx: Tx, parent: ZoneParent, ids: Sequence[str], now: datetime
) -> tuple[list[ServerId], list[str], set[str]]:
    """Return a parent's servers of ``ids`` in three lists: to undo here, to undo below, to keep.

    If the parent may no longer write, the servers of its decided boots are kept.
    """
    own = servers.alive(tx, [ServerId(each) for each in ids])
    below = remote.by_uuids(tx, ids)
    since = now - audit.DECIDED_WITHIN
    begun = {each.uuid: each.created_at for each in own if parent.owns(each.project_id)}
    begun |= {each.uuid: each.created_at for each in below if parent.owns(each.project_id)}
    kept = {str(uuid) for uuid, at in begun.items() if not parent.may_write and at <= since}
    gone = begun.keys() - kept
    return (
        [each.uuid for each in own if each.uuid in gone],
        [each.uuid for each in below if each.uuid in gone],
        kept,
    )


def _admit(
    boot: TreeBoot, ids: Sequence[str], own: Collection[str], tx: Tx, is_repeat: bool
) -> set[str]:
    """Accept the id of a parent's request. Return the ids of its servers that must not be built.

    The id of such a server is already used, or the server is in a zone below although it is in
    ``own``. The server group of the request is stored, so that servers in this zone and below can
    join it.
    """
    request, hop = boot.request, boot.hop
    assert hop is not None, "only zone parents send this request"
    parents.spend(tx, hop, is_repeat=is_repeat)
    told = None if request.definitions is None else request.definitions.group
    if told is not None and hints.group_of(request.hints) is not None:
        groups.store_of_parent(tx, told, request.project_id, request.user_id, request.now)
    return zone_servers.taken(tx, ids, request.project_id, here=own)


def own_entry(entry: EntryToBuild, place: Destination, expires_at: datetime) -> EntryBoot:
    """Return an entry in the form in which the engine boots it on a host of this zone."""
    return EntryBoot(
        server_id=ServerId(entry.server_id),
        name=entry.name,
        hostname=entry.hostname,
        launch_index=entry.launch_index,
        host=place.host,
        provider_uuid=place.provider_uuid,
        entry_id=place.server_id,
        expires_at=expires_at,
    )


def _outcome(server_id: str, answer: Booted | BaseException) -> str:
    """Return the outcome of an entry for a host of this zone. Raise unexpected errors."""
    if isinstance(answer, Booted):
        return Outcome.BUILT
    if isinstance(answer, EntryUsed) and answer.server_id == server_id:
        # The parent repeats a request, because it did not get the answer.
        return Outcome.BUILT
    if isinstance(answer, Unavailable) or not isinstance(answer, Refusal):
        raise answer
    return Outcome.STALE
