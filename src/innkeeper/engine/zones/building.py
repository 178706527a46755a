"""Let a child zone build the servers of build plan entries, and undo servers in it.

An entry is the child's own sealed offer of a host for one server.

Always true: if the outcome of an entry stays unknown, the child is asked to undo the entry's
server. A request that got no answer is never repeated with the same ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

import msgspec
import structlog

from innkeeper.clients import zones
from innkeeper.clients.zone_wire import ZoneAnswer, ZoneSilent
from innkeeper.clients.zones import ZoneClient, ZoneRequest
from innkeeper.domain.compute import BootRequest, Definitions
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zone_tree import TreeRequest, ZoneServer, ZoneServerState
from innkeeper.engine.zones.known_children import SYSTEM, KnownChild, decoded
from innkeeper.engine.zones.tree_request import TreeBoot

LOG = structlog.get_logger("innkeeper.zones")
CREATE, UNDO = "/servers", "/zones/undo"
ENTRIES_AT_ONCE = 250
"""The maximum number of entries in one request. One commit of the child can take this number."""
UNDONE_AT_ONCE = 1000
BYTES_OF_ID = 256
"""An answer has an id and a word for each server. Both together have at most this many bytes."""


class Outcome:
    """The outcome of an entry. ``BUILT``: its server exists.

    ``STALE``: the server does not exist, and another entry may be used for it.

    ``UNKNOWN``: the child gave no answer, so the server may exist.
    """

    BUILT = "built"
    STALE = "stale"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of a request to a child.

    ``outcomes`` has the outcome for each server's id. With ``is_refused``, the child refused the
    whole request.
    """

    outcomes: dict[str, str]
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class EntryToBuild:
    """An entry of a child's plan, and the server to build with it."""

    server_id: str
    sealed: str
    name: str
    hostname: str | None
    launch_index: int

    def told(self) -> dict[str, object]:
        """Return the entry in the form that is sent to the child."""
        row = {
            "id": self.server_id,
            "blob": self.sealed,
            "name": self.name,
            "launch_index": self.launch_index,
        }
        return row if self.hostname is None else {**row, "hostname": self.hostname}


async def all_ended(*works: Awaitable[None]) -> None:
    """Wait until all works of a boot have ended. Then raise the first error of a work, if any.

    If a work is refused, the others may still build servers. Only after all have ended does the
    boot know all servers that it must undo.
    """
    for each in await asyncio.gather(*works, return_exceptions=True):
        if each is not None:
            raise each


def begun(
    server_id: ServerId,
    child: KnownChild,
    request: BootRequest,
    definitions: Definitions,
    *,
    batch_min: int,
    now: datetime,
) -> ZoneServer:
    """Return the row of a server, which must be written before a child is asked to build it."""
    return ZoneServer(
        uuid=server_id,
        child_id=child.zone.id,
        batch_id=request.batch_id,
        project_id=request.project_id,
        user_id=request.user_id,
        vcpus=definitions.flavor.vcpus,
        memory_mb=definitions.flavor.memory_mb,
        state=ZoneServerState.BUILDING,
        batch_min=batch_min,
        created_at=now,
        updated_at=now,
    )


async def build(
    client: ZoneClient,
    child: KnownChild,
    boot: TreeBoot,
    definitions: Definitions,
    entries: Sequence[EntryToBuild],
    tree: TreeRequest,
) -> dict[str, str]:
    """Let a child build servers, and return the outcome for each server's id."""
    parts = [entries[i : i + ENTRIES_AT_ONCE] for i in range(0, len(entries), ENTRIES_AT_ONCE)]
    found = await asyncio.gather(
        *(_build_some(client, child, boot, definitions, part, tree) for part in parts)
    )
    return {server_id: outcome for some in found for server_id, outcome in some.items()}


async def _build_some(
    client: ZoneClient,
    child: KnownChild,
    boot: TreeBoot,
    definitions: Definitions,
    entries: Sequence[EntryToBuild],
    tree: TreeRequest,
) -> dict[str, str]:
    body = boot.create_body(definitions, [each.told() for each in entries])
    ids = [each.server_id for each in entries]
    return (await _sent(client, child, boot, body, ids, tree)).outcomes


async def place(
    client: ZoneClient,
    child: KnownChild,
    boot: TreeBoot,
    definitions: Definitions,
    ids: Sequence[str],
    tree: TreeRequest,
) -> Sent:
    """Let a child choose hosts for servers and build the servers. Return the outcome for each id.

    The child builds at least as many servers as the request needs, or none.
    """
    return await _sent(client, child, boot, boot.placing_body(definitions, ids), ids, tree)


async def _sent(
    client: ZoneClient,
    child: KnownChild,
    boot: TreeBoot,
    body: Mapping[str, object],
    ids: Sequence[str],
    tree: TreeRequest,
) -> Sent:
    request = ZoneRequest(
        "POST",
        CREATE,
        boot.caller_below(),
        tree,
        tree.time_left_ms / 1000,
        msgspec.json.encode(body),
        boot.headers,
        zones.bytes_of(len(ids), BYTES_OF_ID),
    )
    try:
        answer = await client.send(child.zone, child.password, request)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            # The child accepts each request only once. A copy of this request may have arrived
            # earlier.
            return Sent(dict.fromkeys(ids, Outcome.UNKNOWN), is_refused=True)
        if HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return Sent(dict.fromkeys(ids, Outcome.STALE), is_refused=True)
        return Sent(_outcomes(answer, ids))
    except ZoneSilent as error:
        LOG.warning("zone_build_failed", zone=child.zone.name, reason=str(error))
        outcome = Outcome.UNKNOWN if error.may_have_arrived else Outcome.STALE
        return Sent(dict.fromkeys(ids, outcome))


def _outcomes(answer: ZoneAnswer, ids: Sequence[str]) -> dict[str, str]:
    if answer.status != HTTPStatus.ACCEPTED:
        raise ZoneSilent.of_status(answer.status)
    told = decoded(answer)
    zone = told.get("zone") if isinstance(told, Mapping) else None
    rows = zone.get("outcomes") if isinstance(zone, Mapping) else None
    known = rows if isinstance(rows, Mapping) else {}
    # This is a tuple, because a set fails for unhashable values, with which a child may answer.
    usable = (Outcome.BUILT, Outcome.STALE)
    return {each: known[each] if known.get(each) in usable else Outcome.UNKNOWN for each in ids}


async def undo(
    client: ZoneClient, child: KnownChild, ids: Sequence[str], tree: TreeRequest
) -> list[str]:
    """Undo servers in a child. Return the ids that the child certainly does not have now.

    The child deletes the servers as their users would. It also blocks unknown ids, so that no late
    request builds servers with these ids.
    """
    done: list[str] = []
    for start in range(0, len(ids), UNDONE_AT_ONCE):
        part = list(ids[start : start + UNDONE_AT_ONCE])
        body = msgspec.json.encode({"servers": part})
        request = ZoneRequest(
            "POST",
            UNDO,
            SYSTEM,
            tree,
            tree.time_left_ms / 1000,
            body,
            answer_bytes_max=zones.bytes_of(len(part), BYTES_OF_ID),
        )
        try:
            answer = await client.send(child.zone, child.password, request)
            if answer.status != HTTPStatus.OK:
                raise ZoneSilent.of_status(answer.status)
            told = decoded(answer)
        except ZoneSilent as error:
            LOG.warning("zone_undo_failed", zone=child.zone.name, reason=str(error))
            continue
        gone = told.get("gone") if isinstance(told, Mapping) else None
        known = (
            set(gone) if isinstance(gone, list) and all(isinstance(e, str) for e in gone) else set()
        )
        done += [each for each in part if each in known]
    return done
