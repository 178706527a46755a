"""A cache of the child zones in one process, and the first contact with a child zone.

Always true: if another process changes a child zone, this process knows the change after at most
``KNOWN_FOR_S`` seconds. A child counts as silent if its answer is malformed, or if its password
cannot be decrypted. If a child did not answer a plan in time, the next plans leave it out until it
answers a poll. So such a child delays only one plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

import msgspec

from innkeeper.clients.zone_wire import ZoneAnswer, ZoneSilent
from innkeeper.clients.zones import ANSWER_BYTES_LEAST, ZoneClient, ZoneRequest
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import IdSource, is_uuid
from innkeeper.domain.slices import Zoning
from innkeeper.domain.zone_tree import ChildZone, TreeRequest
from innkeeper.engine.engine import Engine
from innkeeper.engine.lateness import Lateness
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.zones import capabilities, children
from innkeeper.systems.zones.children import Reached

KNOWN_FOR_S = 1.0
REFUSED_FOR_S = 60.0
"""For this time after a child refused a request without a plan, it gets only requests with plans.
Such a child may run an older release."""
INFO = "/zones/info"
SYSTEM = RequestContext(request_id="", user_id="zone")
"""The caller of requests without a user, such as polls. It has no roles."""
LINK_ENDING = ".invalid"
"""The top-level domain of invented host names: it never exists (RFC 2606)."""


@dataclass(frozen=True, slots=True)
class KnownChild:
    """A child zone, and this zone's password there (``None`` if it cannot be decrypted)."""

    zone: ChildZone
    password: str | None


def load(tx: Tx, box: SecretBox) -> list[KnownChild]:
    """Return all child zones, also those whose passwords cannot be decrypted."""
    known = children.every(tx)
    # Without a password, only the requests to this child fail. Each poll records the reason.
    passwords = children.passwords_of(tx, known, box)
    return [KnownChild(each, passwords.get(each.uuid)) for each in known]


class KnownChildren:
    """A cache of the child zones of this zone.

    ``timer_s`` returns monotonic seconds.
    """

    def __init__(
        self,
        engine: Engine,
        box: SecretBox,
        poll_interval_s: float,
        timer_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._box = box
        self._timer_s = timer_s
        self._known: list[KnownChild] = []
        self._read_s = float("-inf")
        self._forgotten = 0
        self._late = Lateness(poll_interval_s)
        self._refused_s: dict[str, float] = {}

    def beside(self) -> KnownChildren:
        """Return an empty cache of the same child zones for another event loop."""
        return KnownChildren(self._engine, self._box, self._late.poll_interval_s, self._timer_s)

    async def every(self) -> list[KnownChild]:
        """Return all child zones."""
        now_s = self._timer_s()
        if now_s - self._read_s < KNOWN_FOR_S:
            return self._known
        before = self._forgotten
        found = await self._engine.read(lambda tx: load(tx, self._box))
        if before == self._forgotten:
            # If ``forget`` was called during the read, a child may have changed since.
            self._known, self._read_s = found, now_s
        return found

    def note_late(self, child: ChildZone, now: datetime) -> None:
        """Remember that this child did not answer a plan in time."""
        self._late.note(child.uuid, now)

    def is_late(self, child: ChildZone) -> bool:
        """Return whether this child missed a plan, and has not answered a poll since then."""
        return self._late.is_late(child.uuid, child.state.last_seen_at)

    def note_refusal(self, child: ChildZone) -> None:
        """Remember that this child refused to place servers without a plan."""
        self._refused_s[child.uuid] = self._timer_s()

    def needs_plans(self, child: ChildZone) -> bool:
        """Return whether this child has recently refused to place servers without a plan."""
        refused_s = self._refused_s.get(child.uuid, float("-inf"))
        return self._timer_s() - refused_s < REFUSED_FOR_S

    async def by_id(self, child_id: int) -> KnownChild | None:
        """Return the child zone with this row id."""
        return next((each for each in await self.every() if each.zone.id == child_id), None)

    def forget(self) -> None:
        """Drop the cache, because this process changed a child."""
        self._forgotten += 1
        self._read_s = float("-inf")


def tree_of(zoning: Zoning, zone_id: str, ids: IdSource, timeout_s: float) -> TreeRequest:
    """Return the facts that children need about a request that begins in this zone."""
    return TreeRequest(
        request_id=ids.uuid(),
        visited=(zone_id,),
        hops_left=zoning.zone_hops_max - 1,
        time_left_ms=int(timeout_s * 1000),
        link_host=ids.uuid() + LINK_ENDING,
    )


def decoded(answer: ZoneAnswer) -> object:
    """Return the JSON body of an answer. Raises :class:`ZoneSilent` if the body is not JSON."""
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ZoneSilent("the answer is not JSON", may_have_arrived=True) from error


async def reach(
    client: ZoneClient, child: KnownChild, tree: TreeRequest, timeout_s: float
) -> Reached:
    """Ask a child for its name and capabilities. Raises :class:`ZoneSilent`."""
    begun_s = time.perf_counter()
    bytes_max = ANSWER_BYTES_LEAST
    request = ZoneRequest("GET", INFO, SYSTEM, tree, timeout_s, answer_bytes_max=bytes_max)
    answer = await client.send(child.zone, child.password, request)
    took_ms = (time.perf_counter() - begun_s) * 1000
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise ZoneSilent("the child refuses username and password", may_have_arrived=True)
    if answer.status != HTTPStatus.OK:
        raise ZoneSilent.of_status(answer.status)
    body = decoded(answer)
    zone = body.get("zone") if isinstance(body, Mapping) else None
    zone_id = zone.get("id") if isinstance(zone, Mapping) else None
    if zone is None or not isinstance(zone_id, str) or not is_uuid(zone_id):
        raise ZoneSilent("the address is not that of a zone", may_have_arrived=True)
    return Reached(zone_id, took_ms, capabilities.checked(zone.get("capabilities")))
