"""A client of pods: it logs in to their Identity API, and sends requests to their services.

Always true: every request has a total deadline, which includes the login and the wait for a
connection. At most ``requests_max`` requests to one pod run at once. An answer is read up to its
maximum size and no further. Redirects are not followed. Errors contain no password and no token.

A request without an answer may have changed something in the pod. :class:`PodSilent` says whether
the request may have arrived.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from urllib.parse import urlsplit

import msgspec

from innkeeper.clients.certificates import trust_of
from innkeeper.clients.kept_connections import (
    KeptConnections,
    NoAnswer,
    NotSent,
    ServiceWire,
    WireAnswer,
    WireRequest,
)
from innkeeper.clients.pod_logins import PodLogin, PodSession, login_body, session_of

EARLY = timedelta(seconds=60)
"""A token is renewed this long before it expires."""
WORDS_MAX = 200
WITH_STATUS = "it answers with the status {}"

Observe = Callable[[str, int | None, float], None]
"""Called after each request, with the pod's name, the status (if any), and the seconds."""
Begin = Callable[[], None]
"""Called before each request is sent."""


class PodSilent(Exception):
    """A pod gave no usable answer.

    ``may_have_arrived`` says that the pod may have received the request. The message is for
    administrators.
    """

    def __init__(self, why: str, *, may_have_arrived: bool = False) -> None:
        super().__init__(why)
        self.may_have_arrived = may_have_arrived

    @classmethod
    def of_status(cls, status: int, *, may_have_arrived: bool = False) -> PodSilent:
        """Return the error for an answer with an unexpected status."""
        return cls(WITH_STATUS.format(status), may_have_arrived=may_have_arrived)


class LoginRefused(PodSilent):
    """The pod refuses the user, the password or the project."""


class NoService(PodSilent):
    """The pod's catalog has no service of this type in the pod's region."""


@dataclass(frozen=True, slots=True)
class PodCall:
    """A request for a pod. ``target`` is relative to the service's address, as in ``/servers``."""

    service_type: str
    method: str
    target: str
    timeout_s: float
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


PodAnswer = WireAnswer
"""The answer of a pod."""
Sessions = dict[tuple[str, str, str], tuple[PodLogin, PodSession]]
"""The last login at each pod and project, and the session that the login gave."""
SESSIONS_MAX = 4096
BELIEVED = timedelta(seconds=5)
"""The time for which a refused login is not sent again, because pods lock a user out after too many
failed logins."""
REFUSED = "the pod refuses user, password or project"
WireOf = Callable[[], ServiceWire]
"""A function that makes a :class:`ServiceWire`. Each event loop needs its own."""
IMAGE, IDENTITY = "image", "identity"
"""Types of services. The service ``IDENTITY`` has the address to which logins are sent."""


def body_of(answer: PodAnswer) -> dict[str, object]:
    """Return the body of an answer, which must be a JSON object. Raises :class:`PodSilent`."""
    try:
        body = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise PodSilent("its answer is not JSON", may_have_arrived=True) from error
    if not isinstance(body, dict):
        raise PodSilent("its answer is not an object", may_have_arrived=True)
    return body


@dataclass(slots=True)
class _Known:
    """The locks of one pod.

    They limit the number of concurrent requests, and allow one login at a time.
    """

    turns: asyncio.Semaphore
    logging_in: asyncio.Lock


class _Progress:
    """The progress of a request. ``has_begun`` says that the pod may have received it."""

    has_begun = False


class PodClient:
    """Sends requests to pods, from one event loop.

    Clients of other event loops may share the ``sessions``, so that they log in less often.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        requests_max: int,
        trusted: ssl.SSLContext | None = None,
        observe: Observe | None = None,
        sessions: Sessions | None = None,
        wire_of: WireOf | None = None,
        begin: Begin | None = None,
    ) -> None:
        self._clock = clock
        self._requests_max = requests_max
        self._trusted = trusted or trust_of(None, None, None)
        self._wire_of = wire_of
        self._wire = KeptConnections(self._trusted) if wire_of is None else wire_of()
        self._observe = observe
        self._begin = begin
        self.sessions: Sessions = {} if sessions is None else sessions
        self._known: dict[str, _Known] = {}
        self._refused: dict[tuple[str, str, str], tuple[PodLogin, datetime]] = {}

    def beside(self, sessions: Sessions | None = None) -> PodClient:
        """Return a client for another event loop.

        The new client shares the sessions of this client, unless ``sessions`` are given. It also
        shares the trusted certificates, because reading them takes many milliseconds.
        """
        return PodClient(
            self._clock,
            self._requests_max,
            self._trusted,
            self._observe,
            self.sessions if sessions is None else sessions,
            self._wire_of,
            self._begin,
        )

    async def send(self, login: PodLogin, call: PodCall) -> PodAnswer:
        """Send a request, and return the whole answer. Raises :class:`PodSilent`."""
        begun_s = time.perf_counter()
        status: int | None = None
        progress = _Progress()
        if self._begin is not None:
            self._begin()
        try:
            async with asyncio.timeout(call.timeout_s):
                answer = await self._with_token(login, call, progress)
            status = answer.status
            return answer
        except TimeoutError as error:
            why = f"the pod gave no answer within {call.timeout_s:g} seconds"
            raise PodSilent(why, may_have_arrived=progress.has_begun) from error
        finally:
            # A pod that is only being tried has no name yet.
            if self._observe is not None and login.name:
                self._observe(login.name, status, time.perf_counter() - begun_s)

    async def check(self, login: PodLogin, timeout_s: float) -> PodSession:
        """Log in anew, and return the session. Raises :class:`PodSilent`."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._log_in(login)
        except TimeoutError as error:
            raise PodSilent(f"the pod gave no answer within {timeout_s:g} seconds") from error

    async def session(
        self, login: PodLogin, timeout_s: float, *, is_sure: bool = False
    ) -> PodSession:
        """Return a session for a login. The session may be cached. Raises :class:`PodSilent`.

        ``is_sure`` says that the login is known to work now. An earlier refusal of the login is
        then forgotten.
        """
        if is_sure:
            self._refused.pop(login.key, None)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._session(login, self._of(login))
        except TimeoutError as error:
            raise PodSilent(f"the pod gave no answer within {timeout_s:g} seconds") from error

    async def forget(self, uuid: str) -> None:
        """Close the connections to one pod, and forget its token."""
        for key in [each for each in self.sessions if each[0] == uuid]:
            del self.sessions[key]
        self._known.pop(uuid, None)
        await self._wire.forget(uuid)

    async def close(self) -> None:
        """Close all connections."""
        await self._wire.close()
        self._known.clear()

    def _of(self, login: PodLogin) -> _Known:
        known = self._known.get(login.uuid)
        if known is None:
            turns = asyncio.Semaphore(self._requests_max)
            known = self._known[login.uuid] = _Known(turns, asyncio.Lock())
        return known

    async def _with_token(self, login: PodLogin, call: PodCall, progress: _Progress) -> PodAnswer:
        known = self._of(login)
        session = await self._session(login, known)
        answer = await self._ask(session, login, call, progress)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            # The token may have been revoked. A 401 means that the request did nothing.
            progress.has_begun = False
            async with known.logging_in:
                _, last = self.sessions.get(login.key, (None, None))
                if last is session:
                    self.sessions.pop(login.key, None)
            session = await self._session(login, known)
            answer = await self._ask(session, login, call, progress)
        return answer

    async def _session(self, login: PodLogin, known: _Known) -> PodSession:
        session = self._kept(login)
        if session is not None:
            return session
        async with known.logging_in:
            # While this request waited, another request may have logged in.
            session = self._kept(login)
            if session is None:
                self._demand_not_refused(login)
                session = await self._log_in(login)
                if len(self.sessions) >= SESSIONS_MAX:
                    self.sessions.pop(next(iter(self.sessions)), None)
                self.sessions[login.key] = login, session
            return session

    def _kept(self, login: PodLogin) -> PodSession | None:
        """Return the cached session of this login, unless it is missing or expires soon."""
        used, session = self.sessions.get(login.key, (None, None))
        if session is None or used != login or session.expires_at <= self._clock() + EARLY:
            return None
        return session

    def _demand_not_refused(self, login: PodLogin) -> None:
        """Raise :class:`LoginRefused` if the pod refused this login a moment ago."""
        refused, until = self._refused.get(login.key, (None, self._clock()))
        if refused == login and self._clock() < until:
            raise LoginRefused(REFUSED)

    async def _log_in(self, login: PodLogin) -> PodSession:
        url = login.auth_url + "/auth/tokens"
        # A login changes nothing, so it does not matter whether it arrived.
        answer = await self._exchange(login, "POST", url, {}, login_body(login), _Progress())
        if answer.status == HTTPStatus.UNAUTHORIZED:
            if len(self._refused) >= SESSIONS_MAX:
                self._refused.clear()
            self._refused[login.key] = login, self._clock() + BELIEVED
            raise LoginRefused(REFUSED)
        if answer.status != HTTPStatus.CREATED:
            raise PodSilent(f"the login was answered with the status {answer.status}")
        try:
            return session_of(answer.headers.get("x-subject-token", ""), answer.body)
        except ValueError as error:
            raise PodSilent(f"the answer to the login is not usable: {error}") from error

    async def _ask(
        self, session: PodSession, login: PodLogin, call: PodCall, progress: _Progress
    ) -> PodAnswer:
        address = login.endpoints.get(call.service_type)
        if address is None and call.service_type == IDENTITY:
            address = login.auth_url
        if address is None:
            address = session.address(call.service_type, login.region_name)
        if address is None:
            raise NoService(f"the catalog has no {call.service_type} service")
        headers = {**call.headers, "x-auth-token": session.token}
        if call.service_type == IMAGE:
            # Some catalogs have the address of the Image API with its version, and others without.
            address = address.removesuffix("/v2")
        url = address + call.target
        return await self._exchange(login, call.method, url, headers, call.body, progress)

    async def _exchange(
        self,
        login: PodLogin,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        progress: _Progress,
    ) -> PodAnswer:
        sent = {
            "accept": "application/json",
            "content-type": "application/json",
            "user-agent": "innkeeper",
            **headers,
            "host": urlsplit(url).netloc,
            "accept-encoding": "identity",
        }
        lines = tuple((k.encode("latin-1"), text.encode("latin-1")) for k, text in sent.items())
        wanted = WireRequest(method, url, lines, body)
        try:
            async with self._of(login).turns:
                progress.has_begun = True
                return await self._wire.exchange(login.uuid, wanted)
        except NotSent as error:
            progress.has_begun = False
            raise PodSilent(_words(error)) from error
        except NoAnswer as error:
            raise PodSilent(_words(error), may_have_arrived=True) from error


def _words(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return "".join(each if each.isprintable() else " " for each in text[:WORDS_MAX])
