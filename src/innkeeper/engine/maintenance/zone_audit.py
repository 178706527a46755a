"""Compares this zone's records of servers in child zones with the children's answers.

Always true: a difference is reported only if a second look confirms it. So services may run during
an audit. A repair changes only this zone, never a child.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise

from innkeeper.clients.zone_wire import ZoneSilent
from innkeeper.clients.zones import ZoneClient
from innkeeper.domain.auditing import Finding, Invariant, Repaired
from innkeeper.domain.ids import Clock, IdSource, ServerId
from innkeeper.domain.slices import Zoning
from innkeeper.domain.zone_tree import HeldServer, ZoneServer, ZoneServerState
from innkeeper.engine.database import Database
from innkeeper.engine.zones import held_servers, known_children
from innkeeper.engine.zones.known_children import KnownChild, tree_of
from innkeeper.engine.zones.neighbours import client_of
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers import zone_servers
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.zones import parents, remote
from innkeeper.systems.zones.audit import ROOM

_invariant = partial(Invariant, ROOM)
SILENT = _invariant(
    "silent-zone",
    "an enabled child zone reports which servers it has",
    "Repair the connection, or disable the child zone.",
)
LOST_BELOW = _invariant(
    "lost-below",
    "every server that this zone has recorded for a child zone exists in that child zone",
    "Wait for the periodic repair.",
    "forgets the server, so that the server no longer counts against quotas",
)
UNKNOWN_BELOW = _invariant(
    "unknown-below",
    "every server that a child zone runs for this zone is recorded in this zone",
    "Find out who owns the server. Delete the server in the child zone.",
    "records the server, unless it may belong to a zone parent",
)
WRONG_BELOW = _invariant(
    "wrong-below",
    "a server in a child zone counts against quotas with the amounts that it has in that zone",
    "Wait for the periodic repair.",
    "counts the amounts that the child zone reports",
)
UNKNOWN_MAX = 20_000
"""The maximum number of servers in one child's answers that are unknown in this zone."""
ZONE_INVARIANTS = (SILENT, LOST_BELOW, UNKNOWN_BELOW, WRONG_BELOW)


class ZoneAudit:
    """An audit that asks all enabled child zones. ``zone_id`` is this zone's random id."""

    def __init__(
        self,
        database: Database,
        box: SecretBox,
        zoning: Zoning,
        zone_id: str,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._database = database
        self._box = box
        self._connect = partial(client_of, clock, ids, zoning.zone_requests_max)
        self._request = partial(tree_of, zoning, zone_id, ids, zoning.zone_request_timeout_s)
        self._told: dict[str, tuple[KnownChild, HeldServer]] = {}

    def look(self) -> list[Finding]:
        """Ask all enabled children, and return all findings."""
        return asyncio.run(self._look())

    def repair(
        self, found: Sequence[Finding], now: datetime, *, is_dry: bool = False
    ) -> Iterator[Repaired]:
        """Repair findings of the last :meth:`look`. Yield each repair."""
        acts = {LOST_BELOW: self._forget, UNKNOWN_BELOW: self._adopt, WRONG_BELOW: self._count}
        for each in found:
            act = acts.get(each.invariant)
            if act is not None:
                done = self._database.write(partial(act, uuid=each.key, now=now, is_dry=is_dry))
                if done is not None:
                    yield Repaired(each.invariant.kind, done)

    async def _look(self) -> list[Finding]:
        client = self._connect()
        found: list[Finding] = []
        try:
            known = self._database.read(partial(known_children.load, box=self._box))
            asked = [each for each in known if each.zone.is_enabled]
            # All children are asked at once, so that several silent children delay the audit only
            # once.
            errors = await asyncio.gather(*(self._reach(client, each) for each in asked))
            for child, error in zip(asked, errors, strict=True):
                found += await self._of_child(client, child, error)
        finally:
            await client.close()
        return found

    async def _reach(self, client: ZoneClient, child: KnownChild) -> ZoneSilent | None:
        """Ask a child whether it is reachable.

        Return the error, or ``None`` if the child answers.
        """
        request = self._request()
        try:
            await known_children.reach(client, child, request, request.time_left_ms / 1000)
        except ZoneSilent as error:
            return error
        return None

    async def _of_child(
        self, client: ZoneClient, child: KnownChild, error: ZoneSilent | None
    ) -> list[Finding]:
        if error is None:
            try:
                return await self._compare(client, child)
            except ZoneSilent as late:
                error = late
        name = child.zone.name
        return [SILENT.broken(name, f"child zone {name}: {error}")]

    async def _compare(self, client: ZoneClient, child: KnownChild) -> list[Finding]:
        return [*await self._known(client, child), *await self._told_by(client, child)]

    async def _known(self, client: ZoneClient, child: KnownChild) -> list[Finding]:
        """Ask a child for all servers that this zone has recorded there. Return the differences."""
        found: list[Finding] = []
        after: ServerId | None = None
        page = partial(remote.page, limit=held_servers.PAGE, child_id=child.zone.id)
        while rows := self._database.read(partial(page, after=after)):
            after = rows[-1].uuid
            built = [each for each in rows if each.state == ZoneServerState.BUILT]
            ids = [each.uuid for each in built]
            held = await held_servers.existing(client, child, ids, self._request())
            now_known = self._rows(ids)
            for each in built:
                if now_known.get(each.uuid) == each:
                    found += self._difference(child, each, held.get(each.uuid))
        return found

    def _difference(
        self, child: KnownChild, known: ZoneServer, there: HeldServer | None
    ) -> Iterator[Finding]:
        uuid, zone = known.uuid, child.zone.name
        if there is None:
            yield LOST_BELOW.broken(uuid, f"child zone {zone} has no server {uuid}")
            return
        counted, real = (known.vcpus, known.memory_mb), (there.vcpus, there.memory_mb)
        if counted != real:
            self._told[uuid] = child, there
            text = f"server {uuid} in zone {zone} counts with (vcpus, MB) {counted}, but has {real}"
            yield WRONG_BELOW.broken(uuid, text)

    async def _told_by(self, client: ZoneClient, child: KnownChild) -> list[Finding]:
        """Ask a child for all servers that it has for this zone.

        Return those that are unknown here.

        Raises :class:`ZoneSilent` if the child reports too many unknown servers, because its
        answers may never end.
        """
        found: list[Finding] = []
        unknown = 0
        after: str | None = None
        while rows := await held_servers.page(client, child, after, self._request()):
            ids = [each.uuid for each in rows]
            is_in_order = all(one < other for one, other in pairwise([after or "", *ids]))
            known = self._rows(ids)
            unknown += sum(each not in known for each in ids)
            if not is_in_order or unknown > UNKNOWN_MAX:
                raise ZoneSilent("its list of servers does not end", may_have_arrived=True)
            after = ids[-1]
            strange = [e.uuid for e in rows if e.uuid not in known and not e.is_undecided]
            # Look again, because these servers may have been deleted, or their rows may have been
            # written.
            held = await held_servers.existing(client, child, strange, self._request())
            known = self._rows(strange)
            for uuid, each in held.items():
                if uuid not in known and not each.is_undecided:
                    self._told[uuid] = child, each
                    zone = child.zone.name
                    text = f"child zone {zone} has server {uuid}, which this zone does not know"
                    found.append(UNKNOWN_BELOW.broken(uuid, text))
        return found

    def _rows(self, ids: Sequence[str]) -> Mapping[str, ZoneServer]:
        rows = self._database.read(lambda tx: remote.by_uuids(tx, ids))
        return {each.uuid: each for each in rows}

    def _forget(self, tx: Tx, uuid: str, now: datetime, *, is_dry: bool) -> str | None:
        row = remote.get(tx, uuid)
        if row is None or row.state != ZoneServerState.BUILT:
            return None
        if not is_dry:
            zone_servers.forget(tx, [uuid])
        return f"server {uuid} is forgotten"

    def _adopt(self, tx: Tx, uuid: str, now: datetime, *, is_dry: bool) -> str | None:
        child, there = self._told[uuid]
        # In child zones, projects of zone parents cannot be told from projects of this zone.
        if remote.get(tx, uuid) is not None or parents.listing(tx):
            return None
        if not is_dry:
            zone_servers.adopt(tx, child.zone.id, there, now)
        return f"server {uuid} of project {there.project_id} is recorded"

    def _count(self, tx: Tx, uuid: str, now: datetime, *, is_dry: bool) -> str | None:
        row, (_, there) = remote.get(tx, uuid), self._told[uuid]
        if row is None:
            return None
        if not is_dry:
            zone_servers.resize(tx, row, there.vcpus, there.memory_mb)
        return f"server {uuid} counts with {there.vcpus} vcpus and {there.memory_mb} MB"
