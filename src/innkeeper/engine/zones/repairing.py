"""Finish or undo boots of processes that died, and correct the rows of servers in child zones.

Always true: a server is forgotten only after its child has answered that it has no such server.
Which servers of a boot batch stay is decided only once: rows are updated only if their states have
not changed.

The process of a repaired batch may still be alive. If this process continues late, the process
finds that its rows are decided, and accepts the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from innkeeper.clients.zone_wire import ZoneSilent
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zone_tree import HeldServer, ZoneServer, ZoneServerState
from innkeeper.engine.zones import held_servers
from innkeeper.engine.zones.booting import TreeBooter
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.store import periodic
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers import zone_servers
from innkeeper.systems.zones import audit, remote

LOG = structlog.get_logger("innkeeper.zones")
TASK = audit.REPAIR_TASK
BUILDING = ZoneServerState.BUILDING
WERE_BUILT = (ZoneServerState.BUILT, ZoneServerState.DELETING)
AT_ONCE = 1000
"""The maximum number of servers that each step of a round looks at."""
COMPARED_MAX = 10 * AT_ONCE
"""A round starts no further page after it has compared this many servers. The next round continues
after the last compared server."""
RECENT_S = 300.0
"""For this time after a server was built or resized, each round compares its amounts."""
DEAD_FACTOR = 2.0
"""A batch counts as dead if it has not changed for a certain time. This time is the longest time
between two writes of a living batch, multiplied by this factor."""


@dataclass(slots=True)
class Repairer:
    """The repairs of one process, and where its comparisons continue.

    ``_after`` has the last compared server of each child, by the row id of the child. ``_last`` is
    the row id of the last compared child. A round compares about ``compared_max`` servers at most.
    """

    compared_max: int = COMPARED_MAX
    _after: dict[int, ServerId | None] = field(default_factory=dict)
    _last: int = 0

    async def work(self, tree: ZoneTree, booter: TreeBooter) -> int:
        """Repair what is due, if it is this process's turn.

        Return the number of repaired servers.
        """
        parts = tree.parts
        if not await tree.children.every():
            return 0
        now, period_s = parts.clock(), parts.zoning.zone_poll_interval_s
        if not await parts.engine.write(lambda tx: periodic.take_turn(tx, TASK, period_s, now)):
            return 0
        round_ = _Round(tree, booter, parts.clock())
        count = await round_.undo() + await round_.decide() + await round_.finish_deletes()
        count += await round_.compare_recent()
        known = [each.zone.id for each in await tree.children.every() if each.zone.is_reachable]
        left = self.compared_max
        # Each round begins after the child with which the last round ended.
        for child_id in sorted(known, key=lambda each: (each <= self._last, each)):
            if left <= 0:
                break
            page = await round_.compare_page(child_id, self._after.get(child_id))
            self._after[child_id], self._last = page.last, child_id
            count, left = count + page.changed, left - page.size
        return count


@dataclass(frozen=True, slots=True)
class _Page:
    """The result of comparing a page of a child's servers.

    If more servers may follow, ``last`` is the last server of the page. ``size`` is the number of
    servers, and ``changed`` the number of corrected servers.
    """

    last: ServerId | None
    size: int
    changed: int


@dataclass(slots=True)
class _Round:
    """One round of repairs.

    ``silent`` has the children that did not answer. They are not asked again, so that each delays
    the round only once. ``later`` has the servers that cannot be decided now.
    """

    tree: ZoneTree
    booter: TreeBooter
    now: datetime
    silent: set[int] = field(default_factory=set)
    later: list[ServerId] = field(default_factory=list)

    @property
    def dead_before(self) -> datetime:
        """Rows that last changed before this moment belong to requests that have ended or died."""
        return self.now - DEAD_FACTOR * self._longest

    @property
    def _longest(self) -> timedelta:
        zoning = self.tree.parts.zoning
        return timedelta(seconds=zoning.zone_select_timeout_s + zoning.zone_request_timeout_s)

    async def undo(self) -> int:
        """Ask children again to undo servers that are not gone yet."""
        before = self.now - timedelta(seconds=self.tree.parts.zoning.zone_request_timeout_s)
        rows = await self._read(lambda tx: remote.undone(tx, before, AT_ONCE))
        return len(await self.booter.undo([each.uuid for each in rows])) if rows else 0

    async def decide(self) -> int:
        """Decide about the undecided boot batches of processes that have died."""
        rows = await self._read(lambda tx: remote.undecided(tx, self.dead_before, AT_ONCE))
        batches = dict.fromkeys((each.batch_id, each.project_id) for each in rows)
        count = sum([await self._decide(*each) for each in batches])
        if self.later:
            # In the next round, other servers come before these servers.
            later = partial(remote.look_later, uuids=self.later, now=self.now)
            await self.tree.parts.engine.write(later, len(self.later))
        return count

    async def _decide(self, batch_id: str, project_id: str) -> int:
        engine, now = self.tree.parts.engine, self.now
        rows = await engine.read(lambda tx: remote.of_batch(tx, batch_id, project_id))
        open_ = [each for each in rows if each.batch_min > 0 or each.state == BUILDING]
        if not open_ or any(each.updated_at > self.dead_before for each in open_):
            return 0
        ids = [each.uuid for each in open_]
        held = await self._held([each for each in open_ if each.state == BUILDING])
        if held is None or any(each.is_undecided for each in held.values()):
            self.later += ids
            return 0
        there = [each for each in ids if each in held]
        # A client may have reused the id of an older batch. The servers of the older batch do not
        # count.
        since = min(each.created_at for each in open_) - self._longest
        own = await engine.read(
            lambda tx: zone_servers.own_of_batch(tx, batch_id, project_id, since)
        )
        # A server that the user has deleted counts as built, so that its deletion does not make the
        # batch fail.
        built = [e for e in rows if e.state in WERE_BUILT and e.created_at > since]
        deleted = await engine.read(
            lambda tx: zone_servers.deleted_of_batch(tx, batch_id, project_id, since)
        )
        least = max(each.batch_min for each in open_)
        is_enough = len(there) + len(own) + len(built) + deleted >= least
        LOG.info("zone_batch_repaired", batch=batch_id, servers=len(there), is_kept=is_enough)
        if not is_enough:
            await self.booter.undo(ids, own)
            return len(ids)
        undecided = [each.uuid for each in open_ if each.batch_min > 0]

        def keep(tx: Tx) -> bool:
            return remote.decide(tx, undecided) and remote.settle(tx, there, now)

        if await engine.write(keep, len(ids)):
            # Undo the servers that no child has, so that no late request builds them.
            kept = {*there, *(each.uuid for each in built)}
            await self.booter.undo([each for each in ids if each not in kept])
        return len(ids)

    async def finish_deletes(self) -> int:
        """Forget servers whose deletion in the children is finished."""
        rows = await self._read(lambda tx: remote.deleted(tx, self.now, AT_ONCE))
        engine, now = self.tree.parts.engine, self.now
        count = 0
        for some in remote.by_child(rows).values():
            ids = [each.uuid for each in some]
            held = await self._held(some)
            gone = [] if held is None else [each for each in ids if each not in held]
            kept = [each for each in ids if each not in gone]
            later = partial(remote.look_later, uuids=kept, now=now)
            await engine.write(later, len(kept))
            count += await engine.write(partial(zone_servers.forget_decided, uuids=gone), len(gone))
        return count

    async def compare_recent(self) -> int:
        """Compare recently built or resized servers with the servers in their children."""
        since = self.now - timedelta(seconds=RECENT_S)
        rows = await self._read(
            lambda tx: remote.changed_since(tx, ZoneServerState.BUILT, since, AT_ONCE)
        )
        return sum([await self._compare(some) for some in remote.by_child(rows).values()])

    async def compare_page(self, child_id: int, after: ServerId | None) -> _Page:
        """Compare the next servers that this zone has recorded in a child."""
        rows = await self._read(lambda tx: remote.page(tx, after, AT_ONCE, child_id))
        built = [each for each in rows if each.state == ZoneServerState.BUILT]
        last = rows[-1].uuid if len(rows) == AT_ONCE else None
        return _Page(last, len(rows), await self._compare(built))

    async def _compare(self, rows: Sequence[ZoneServer]) -> int:
        held = await self._held(rows) if rows else None
        if held is None:
            return 0
        engine, count = self.tree.parts.engine, 0
        for each in rows:
            there = held.get(each.uuid)
            amounts = None if there is None else (there.vcpus, there.memory_mb)
            if amounts is not None and amounts != (each.vcpus, each.memory_mb):
                if amounts[0] > each.vcpus or amounts[1] > each.memory_mb:
                    # Larger amounts are not accepted. A resize through this zone counts before it
                    # begins, and a lying child must not use up the quotas of projects. An audit
                    # reports the difference.
                    LOG.warning("zone_server_larger", server=each.uuid, amounts=amounts)
                    continue
                if each.updated_at > self.now:
                    # The child may still begin a resize.
                    continue
                change = partial(
                    zone_servers.resize_compared,
                    compared=each,
                    vcpus=amounts[0],
                    memory_mb=amounts[1],
                )
                count += await engine.write(change)
        return count + await self._forget([e.uuid for e in rows if e.uuid not in held])

    async def _forget(self, gone: Sequence[str]) -> int:
        if not gone:
            return 0
        return await self.tree.parts.engine.write(
            lambda tx: zone_servers.forget(tx, gone), len(gone)
        )

    async def _held(self, rows: Sequence[ZoneServer]) -> Mapping[str, HeldServer] | None:
        """Return the servers that their children have, or ``None`` if a child is silent."""
        parts = self.tree.parts
        found: dict[str, HeldServer] = {}
        for child_id, some in remote.by_child(rows).items():
            child = await self.tree.children.by_id(child_id)
            if child is None or not child.zone.is_reachable or child_id in self.silent:
                return None
            request = self.tree.below(None, parts.zoning.zone_request_timeout_s)
            ids = [each.uuid for each in some]
            try:
                found |= await held_servers.existing(parts.client, child, ids, request)
            except ZoneSilent as error:
                LOG.warning("zone_repair_failed", zone=child.zone.name, reason=str(error))
                self.silent.add(child_id)
                return None
        return found

    async def _read(self, work: Callable[[Tx], list[ZoneServer]]) -> list[ZoneServer]:
        return await self.tree.parts.engine.read(work)
