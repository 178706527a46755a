"""A client of child zones: signed requests with a deadline, and bounded answers.

Always true: every request has a total deadline, which includes waiting for a connection. At most
``requests_max`` requests to one child run at once. An answer is read up to its maximum size and no
further. Redirects are not followed. If an error quotes text from a child, the text is short and
printable.

A request without an answer may have changed something in the child. :class:`ZoneSilent` says
whether the request may have arrived.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from innkeeper.clients.zone_wire import (
    ANSWER_BYTES_MAX,
    HttpWire,
    NoAnswer,
    NotSent,
    SignedRequest,
    ZoneAnswer,
    ZoneSilent,
    ZoneWire,
)
from innkeeper.domain import hops
from innkeeper.domain.errors import Invalid
from innkeeper.domain.hops import HopClaims
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import IdSource
from innkeeper.domain.zone_tree import ChildZone, TreeRequest

ANSWER_BYTES_LEAST = 64 * 2**10
"""Every answer may have at least this many bytes, even if the request is for few things."""
VERSION_ENDING = "/v2.1"
WORDS_MAX = 200


Observe = Callable[[str, int | None, float], None]
"""Called after each request, with the child's name, the status (if any), and the seconds."""
Begin = Callable[[], None]
"""Called before each request is sent."""


@dataclass(frozen=True, slots=True)
class ZoneRequest:
    """A request for a child zone.

    ``target`` is relative to the address of the child, as in ``/servers?limit=1``. The answer may
    have at most ``answer_bytes_max`` bytes: decoding a longer answer would delay all other requests
    of this process.
    """

    method: str
    target: str
    caller: RequestContext
    tree: TreeRequest
    timeout_s: float
    body: bytes = b""
    headers: Mapping[str, str] | None = None
    answer_bytes_max: int = ANSWER_BYTES_MAX


def bytes_of(count: int, each: int) -> int:
    """Return the maximum size of an answer with ``count`` things of at most ``each`` bytes."""
    return min(ANSWER_BYTES_LEAST + count * each, ANSWER_BYTES_MAX)


def checked_url(url: str) -> str:
    """Return the normalized address of a child's Compute API. Raises :class:`Invalid`."""
    try:
        parts = urlsplit(url)
        is_fine = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise Invalid(f"{url} is not a valid URL.") from error
    plain = parts.username is None and not parts.query and not parts.fragment
    if parts.scheme not in ("http", "https") or not is_fine or not plain or not url.isascii():
        raise Invalid("api_url must be an http or https URL, without user, query and fragment.")
    path = parts.path.rstrip("/")
    if not path.endswith(VERSION_ENDING):
        raise Invalid(
            f"api_url must be the address of a Compute API, and end with {VERSION_ENDING}."
        )
    return f"{parts.scheme}://{parts.netloc}{path}"


class ZoneClient:
    """Sends requests to child zones, from one event loop."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        ids: IdSource,
        requests_max: int,
        observe: Observe | None = None,
        wire: ZoneWire | None = None,
        begin: Begin | None = None,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._requests_max = requests_max
        self._observe = observe
        self._begin = begin
        self._wire = wire or HttpWire()
        self._turns: dict[str, asyncio.Semaphore] = {}

    async def send(
        self, child: ChildZone, password: str | None, request: ZoneRequest
    ) -> ZoneAnswer:
        """Send a request, and return the whole answer. Raises :class:`ZoneSilent`.

        Without a ``password``, nothing is sent.
        """
        begun_s = time.perf_counter()
        status: int | None = None
        if self._begin is not None:
            self._begin()
        try:
            if password is None:
                raise ZoneSilent(
                    "the stored password of the zone cannot be decrypted; set it again",
                    may_have_arrived=False,
                )
            answer = await self._send(child, password, request)
            status = answer.status
            return answer
        finally:
            # A child that is only being tried has no name yet.
            if self._observe is not None and child.name:
                self._observe(child.name, status, time.perf_counter() - begun_s)

    async def _send(self, child: ChildZone, password: str, request: ZoneRequest) -> ZoneAnswer:
        has_begun = False
        try:
            async with asyncio.timeout(request.timeout_s):
                async with self._turns_of(child):
                    has_begun = True
                    return await self._wire.exchange(child, self._signed(child, password, request))
        except TimeoutError as error:
            raise ZoneSilent(
                f"the child gave no answer within {request.timeout_s:g} seconds",
                may_have_arrived=has_begun,
                is_late=True,
            ) from error
        except NotSent as error:
            raise ZoneSilent(_words(error), may_have_arrived=False) from error
        except NoAnswer as error:
            raise ZoneSilent(_words(error), may_have_arrived=True) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._wire.close()

    async def forget(self, child: ChildZone) -> None:
        """Close the connections to one child."""
        self._turns.pop(child.uuid, None)
        await self._wire.forget(child)

    def _turns_of(self, child: ChildZone) -> asyncio.Semaphore:
        found = self._turns.get(child.uuid)
        if found is None:
            found = self._turns[child.uuid] = asyncio.Semaphore(self._requests_max)
        return found

    def _signed(self, child: ChildZone, password: str, request: ZoneRequest) -> SignedRequest:
        headers = {
            "accept": "application/json",
            "content-type": "application/json",
            "user-agent": "innkeeper",
            **(request.headers or {}),
            "host": urlsplit(child.api_url).netloc,
            "accept-encoding": "identity",
            "x-auth-token": self._token(child, password, request),
        }
        return SignedRequest(
            request.method,
            child.api_url + request.target,
            # A client may send letters that are not ASCII.
            tuple((k.encode("latin-1"), text.encode("latin-1")) for k, text in headers.items()),
            request.body,
            request.answer_bytes_max,
        )

    def _token(self, child: ChildZone, password: str, request: ZoneRequest) -> str:
        now = self._clock()
        claims = HopClaims(
            parent_name=child.username,
            id=self._ids.uuid().replace("-", ""),
            issued_at=now,
            expires_at=now + timedelta(seconds=hops.LIFETIME_S),
            method=request.method,
            target=hops.signed_target(VERSION_ENDING + request.target),
            body_digest=hops.digest_of(request.body),
            caller=request.caller,
            tree=request.tree,
        )
        return hops.sign(claims, password)


def _words(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return "".join(each if each.isprintable() else " " for each in text[:WORDS_MAX])
