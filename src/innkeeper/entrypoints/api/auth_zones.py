"""Authentication of zone parents by hop tokens, in every mode of identity.

A zone parent is another zone that may use this zone. A hop token is a zone parent's signature of
one request. Always true: a token is valid for one method, path, query and body. If a request
writes, its token is accepted only once. A zone parent can only use the routes for servers and
plans.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import msgspec

from innkeeper.domain import hops
from innkeeper.domain.errors import Forbidden, Unauthenticated
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import Clock
from innkeeper.domain.zone_tree import Hop
from innkeeper.engine.engine import Engine
from innkeeper.engine.zones import links
from innkeeper.entrypoints.api.routing import Route
from innkeeper.entrypoints.api.site import Authenticator
from innkeeper.entrypoints.api.token_cache import Epoch
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.zones import parents
from innkeeper.systems.zones.parents import KnownParent

READING = frozenset({"GET", "HEAD"})
SERVERS = "/v2.1/servers"
SELECT = ("POST", "/v2.1/zones/select")
EXPLAIN = ("POST", "/v2.1/os-explain")
EXISTING = ("POST", "/v2.1/zones/servers")
OWN_ROUTES = frozenset(
    {
        ("GET", "/v2.1/zones/info"),
        ("POST", "/v2.1/zones/undo"),
        ("GET", "/v2.1/zones/servers"),
        EXISTING,
    }
)
"""The routes that zone parents use on their own behalf, and not for a user."""
LISTS = frozenset({("GET", SERVERS), ("GET", SERVERS + "/detail")})
ALL_PROJECTS = "all_tenants"
"""The query parameter for a list of servers of all projects."""
WITHOUT_WRITES = frozenset({SELECT, EXPLAIN, EXISTING})
"""Routes that write nothing, although their method is not among the ``READING`` methods."""
BUILD = ("POST", SERVERS)
"""The route whose handler marks the token's id as used, in the transaction that boots the
servers."""
WITHOUT_IDS = frozenset({SELECT, BUILD})
"""The routes whose answers to zone parents contain no ids of projects and users. These answers are
large, so they are not searched for ids."""

IDS = frozenset({"tenant_id", "project_id", "user_id"})
"""The JSON keys whose values are ids with the prefix of a zone parent."""
OF_USERS = links.OF_USERS | {"meta"}
"""The JSON keys whose values users wrote, such as metadata. A zone parent gets these values
unchanged."""
NO_PROJECT = "A request from a zone parent must name a project."


class ZonesAuthenticator:
    """Authenticates zone parents. ``others`` authenticates all other callers."""

    def __init__(
        self,
        others: Authenticator,
        engine: Engine,
        box: SecretBox,
        clock: Clock,
        remember_s: float,
        epoch: Epoch | None = None,
    ) -> None:
        self._others = others
        self._engine = engine
        self._box = box
        self._clock = clock
        self._remember = timedelta(seconds=remember_s)
        self._epoch = epoch
        self._seen_epoch: int | None = None
        self._known: dict[str, tuple[KnownParent, datetime]] = {}
        self._forgotten = 0

    async def authenticate(self, headers: Mapping[str, str], request_id: str) -> RequestContext:
        token = headers.get("x-auth-token", "")
        if not hops.is_one(token):
            return await self._others.authenticate(headers, request_id)
        now = self._clock()
        known = await self._parent(hops.name_in(token), now)
        claims = hops.opened(token, known.secret, now)
        admitted = parents.admitted(claims, known.parent)
        return RequestContext(
            request_id,
            admitted.user_id,
            admitted.project_id,
            admitted.roles,
            admitted.user_name,
            admitted.project_name,
            hop=admitted.hop,
        )

    def forget(self) -> None:
        self._known.clear()
        self._forgotten += 1
        self._others.forget()

    async def _parent(self, name: str, now: datetime) -> KnownParent:
        if self._epoch is not None:
            epoch = await self._epoch()
            if epoch != self._seen_epoch:
                self._known.clear()
                self._forgotten += 1
                self._seen_epoch = epoch
        found, until = self._known.get(name, (None, now))
        if found is None or not now < until <= now + self._remember:
            before = self._forgotten
            found = await self._engine.read(lambda tx: parents.known(tx, name, self._box))
            if before == self._forgotten:
                # If the cache was cleared during the read, do not keep the parent, because it may
                # have changed.
                self._known[name] = found, now + self._remember
        return found


def check_target(context: RequestContext, route: Route, method: str, target: str) -> None:
    """Check that a hop token matches the request, and that zone parents may use the route.

    ``target`` is the requested path with its query. Raises :class:`Unauthenticated` if the token is
    for another method or target. Raises :class:`Forbidden` if the route is not for zone parents, or
    the project is missing. A list of servers of all projects needs no project.
    """
    hop = context.hop
    assert hop is not None, "the caller is a zone parent"
    if method != hop.method or not hops.is_for(target, hop.target):
        raise Unauthenticated(hops.REFUSED)
    is_of_servers = route.path == SERVERS or route.path.startswith(SERVERS + "/")
    asked = route.method, route.path
    if not is_of_servers and asked not in (SELECT, EXPLAIN) and asked not in OWN_ROUTES:
        raise Forbidden("A zone parent may use only the routes of servers and plans.")
    if context.project_id is None and asked not in OWN_ROUTES:
        query = parse_qs(target.partition("?")[2], keep_blank_values=True)
        if asked not in LISTS or ALL_PROJECTS not in query:
            raise Forbidden(NO_PROJECT)


async def check_body(hop: Hop, route: Route, body: bytes, engine: Engine) -> None:
    """Check that a hop token is for this body, and mark the token as used.

    Raises :class:`Unauthenticated` if the token is for another body, or was already used.

    Tokens of requests that only read are not marked. The mark is a separate commit, except for the
    route ``BUILD``, whose handler marks the token in the transaction that boots the servers.
    """
    if not hmac.compare_digest(hops.digest_of(body), hop.body_digest):
        raise Unauthenticated(hops.REFUSED)
    asked = route.method, route.path
    is_reading = route.method in READING or asked in WITHOUT_WRITES
    if not is_reading and asked != BUILD:
        await engine.write(lambda tx: parents.spend(tx, hop))


def remove_prefix(body: Any, prefix: str) -> None:
    """Remove a parent's prefix from the ids of projects and users in an answer to the parent."""
    if isinstance(body, list):
        for each in body:
            remove_prefix(each, prefix)
    elif isinstance(body, dict):
        for key, value in body.items():
            if key in IDS and isinstance(value, str):
                body[key] = value.removeprefix(prefix)
            elif key not in OF_USERS:
                remove_prefix(value, prefix)


def has_ids(route: Route) -> bool:
    """Return whether a route's answers to zone parents may contain ids of projects and users."""
    return (route.method, route.path) not in WITHOUT_IDS


def without_prefix(body: bytes, prefix: str) -> bytes:
    """Return a JSON body without the zone parent's prefix in the ids of projects and users."""
    try:
        found = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return body
    remove_prefix(found, prefix)
    return msgspec.json.encode(found)
