"""How a program of ours calls a Placement API, ours or OpenStack's own.

Always true: every call has a deadline, and answers a bounded length. What may pass by itself (a
broken connection, no answer in time, an answer 500, 502, 503 or 504) is tried again a limited
number of times, with longer and longer waits; a token that is refused is renewed once per call.
A request may therefore arrive twice: whoever writes sends a generation along, or writes what
may be written twice.

What is refused is raised as one of :mod:`innkeeper.domain.errors`, in one line. A line holds
what others say without control characters, cut to a length, and never a token.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import msgspec

from innkeeper.clients.logins import TokenSource
from innkeeper.clients.wire import REFUSED, Broken, HttpResponse, Unfit, Wire
from innkeeper.domain.errors import (
    ConcurrentUpdate,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Refusal,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from innkeeper.domain.versions import Version

TRIES_MAX = 7
FIRST_WAIT_S = 0.2
WAIT_MAX_S = 10.0
"""Between seven tries that is 13 seconds of waiting in all, in which a service can be started
anew. Tries that are not answered at all take their time limit beside that, each of them."""
PASSING = frozenset({500, 502, 503, 504})
"""500 as well: so some services show that writers were in each other's way in the database."""
NEWEST_KNOWN = (1, 39)
"""The newest microversion that the program knows how to read."""
WORDS_MAX = 500
"""How much of somebody else's words a line may hold."""
REFUSALS: Mapping[int, type[Refusal]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
}
CONCURRENT = "placement.concurrent_update"
NO_PLACEMENT = "what answers is no Placement API"
HIDDEN = "[token]"
MICROVERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


class PlacementApi:
    """One Placement API and who asks it. Any number of threads may call at once.

    ``name`` is how messages call it. ``wait`` lets so many seconds pass, and
    ``clock`` gives seconds that only ever grow.
    """

    def __init__(
        self,
        name: str,
        url: str | None,
        login: TokenSource,
        *,
        timeout_s: float,
        connections_max: int,
        wait: Callable[[float], object],
        clock: Callable[[], float],
        ca_file: str | None = None,
    ) -> None:
        self.name = name
        self.version = Version(*NEWEST_KNOWN)
        self._url = url
        self._login = login
        self._wait = wait
        try:
            trusted = ssl.create_default_context(cafile=ca_file)
        except OSError as error:
            raise Invalid(f"{name}: cannot read the certificates in {ca_file}.") from error
        self._wire = Wire(
            timeout_s=timeout_s, connections_max=connections_max, trusted=trusted, clock=clock
        )

    @property
    def url(self) -> str:
        """Where it is, as it was given or as the catalog says. Raises :class:`Invalid`."""
        if self._url is None:
            try:
                found = self._login.service_url("placement")
            except Refusal as refusal:
                raise Unavailable(f"{self.name}: {refusal.message}") from refusal
            if found is None:
                raise Invalid(f"{self.name}: no catalog says where its Placement API is.")
            self._url = found
        return self._url.rstrip("/")

    def negotiate(self, least: Version) -> None:
        """Ask for the versions there are and take the newest that both sides know.

        Raises :class:`Invalid` if that is older than ``least``, or if what answers is no
        Placement API.
        """
        document = self.get("", version=None)
        try:
            (offered,) = document["versions"]
            newest = _parsed(offered["max_version"])
        except (KeyError, TypeError, ValueError) as error:
            raise Invalid(f"{self._whose()}: {NO_PLACEMENT}: / tells no versions.") from error
        if newest < least:
            raise Invalid(
                f"{self._whose()}: it speaks microversions up to {newest}, and {least} is "
                "the least that will do."
            )
        self.version = min(newest, Version(*NEWEST_KNOWN))

    def get(self, path: str, *, version: Version | None, **query: str) -> dict[str, Any]:
        """Ask for something. Raises :class:`NotFound` and all that calls raise."""
        asked = f"{path}?{urlencode(query)}" if query else path
        return self._call("GET", asked, None, version)

    def ask(self, path: str, **query: str) -> dict[str, Any]:
        """As :meth:`get`, at the version that was settled."""
        return self.get(path, version=self.version, **query)

    def send(
        self, method: str, path: str, body: Any = None, *, version: Version | None = None
    ) -> dict[str, Any]:
        """Write something; at the version that was settled, unless said otherwise.

        Raises :class:`ConcurrentUpdate` where a generation is not the present one, which can
        also mean that the same request arrived before.
        """
        return self._call(method, path, body, version or self.version)

    def close(self) -> None:
        """Let go of the connections."""
        self._wire.close()

    def _call(self, method: str, path: str, body: Any, version: Version | None) -> dict[str, Any]:
        asked = f"{self._whose()}: {method} {path or '/'}"
        sent = None if body is None else msgspec.json.encode(body)
        pause_s = FIRST_WAIT_S
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                token, answer = self._send_with_token(method, path, sent, version)
            except Broken as error:
                if not tries_left:
                    raise Unavailable(f"{asked}: {in_one_line(str(error))}.") from error
            except Unfit as error:
                raise Invalid(f"{asked}: {in_one_line(str(error))}.") from error
            else:
                if answer.status not in PASSING or not tries_left:
                    return _judged(asked, answer, token)
            self._wait(pause_s)
            pause_s = min(2 * pause_s, WAIT_MAX_S)
        raise AssertionError("The last try answers or raises.")

    def _send_with_token(
        self, method: str, path: str, body: bytes | None, version: Version | None
    ) -> tuple[str | None, HttpResponse]:
        """The answer, and the token that whoever answers has seen."""
        if version is None:
            return None, self._send(method, path, body, {})
        for is_renewed in (False, True):
            token = self._token()
            headers = {"openstack-api-version": f"placement {version}", "x-auth-token": token}
            answer = self._send(method, path, body, headers)
            if answer.status != HTTPStatus.UNAUTHORIZED or is_renewed:
                return token, answer
            self._login.renew()
        raise AssertionError("The second answer is given whatever it is.")

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> HttpResponse:
        typed = {} if body is None else {"content-type": "application/json"}
        return self._wire.exchange(
            method, self.url + path, {"accept": "application/json", **typed, **headers}, body
        )

    def _token(self) -> str:
        try:
            token = self._login.token()
        except Refusal as refusal:
            raise Unavailable(f"{self._whose()}: {refusal.message}") from refusal
        if not token.isascii() or not token.isprintable():
            raise Invalid(f"{self._whose()}: its token has characters that no token has.")
        return token

    def _whose(self) -> str:
        return f"{self.name} ({self._url})" if self._url else self.name


def in_one_line(text: str, token: str | None = None) -> str:
    """Somebody else's words as they can be shown: cut, and neither control characters nor the
    token, which an answer may repeat.
    """
    shown = "".join(char if char.isprintable() else " " for char in text)
    if token:
        shown = shown.replace(token, HIDDEN)
    return " ".join(shown.split())[:WORDS_MAX].removesuffix(".")


def _judged(asked: str, answer: HttpResponse, token: str | None) -> dict[str, Any]:
    if answer.status < REFUSED:
        return _decoded(asked, answer)
    code, detail = _told(answer)
    said = f"{asked}: {answer.status} {in_one_line(detail, token)}."
    if code == CONCURRENT:
        raise ConcurrentUpdate(said)
    kind = REFUSALS.get(answer.status, Unavailable)
    raise kind(said)


def _decoded(asked: str, answer: HttpResponse) -> dict[str, Any]:
    if not answer.body:
        return {}
    try:
        body = msgspec.json.decode(answer.body)
    except RecursionError as error:
        raise Invalid(f"{asked}: {NO_PLACEMENT}: it is nested too deeply.") from error
    except ValueError as error:
        raise Invalid(f"{asked}: {NO_PLACEMENT}: {in_one_line(str(error))}.") from error
    if not isinstance(body, dict):
        raise Invalid(f"{asked}: {NO_PLACEMENT}: it is no JSON object.")
    return body


def _parsed(text: Any) -> Version:
    found = MICROVERSION.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return Version(int(found[1]), int(found[2]))


def _told(answer: HttpResponse) -> tuple[str | None, str]:
    """The code and the cause in an error's body, as far as it has them."""
    try:
        (first, *_) = msgspec.json.decode(answer.body)["errors"]
        code, detail = first.get("code"), str(first["detail"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, answer.reason
    # The cause follows a sentence that is the same for all errors of a status.
    sentence, separator, cause = detail.partition("\n\n")
    return code, cause if separator else sentence
