"""A client of a Placement API, of Innkeeper or of OpenStack.

Always true: every call has a deadline, and responses are bounded. Temporary failures (a broken
connection, a timeout, a response 500, 502, 503 or 504) are retried a limited number of times,
with backoff. A request may therefore arrive twice: writes must send a generation, or be
idempotent. A refused token is renewed once per call.

A refused request raises one of :mod:`innkeeper.domain.errors`, with a message of one line. Text
from the service is truncated, and contains neither control characters nor the token.
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
"""The longest pause between two tries. The pauses between seven tries add up to 13 seconds, which
is enough for a restart of the service. A try without a response takes as long as its timeout."""
PASSING = frozenset({500, 502, 503, 504})
"""The statuses after which a request is tried again. They include 500, with which some services
respond to write conflicts in their databases."""
NEWEST_KNOWN = (1, 39)
"""The newest microversion whose responses the program can read."""
WORDS_MAX = 500
"""A message quotes at most this many characters of a text from a service."""
REFUSALS: Mapping[int, type[Refusal]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
}
CONCURRENT = "placement.concurrent_update"
NO_PLACEMENT = "the response is not from a Placement API"
HIDDEN = "[token]"
MICROVERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


class PlacementApi:
    """One Placement API with a login. It is thread-safe.

    Messages show ``name``. ``wait`` blocks for a number of seconds, and ``clock`` returns
    monotonic seconds.
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
        """The given URL, or else the URL in the catalog.

        Raises :class:`Invalid` if both are missing.
        """
        if self._url is None:
            try:
                found = self._login.service_url("placement")
            except Refusal as refusal:
                raise Unavailable(f"{self.name}: {refusal.message}") from refusal
            if found is None:
                raise Invalid(f"{self.name}: the service catalog has no Placement API.")
            self._url = found
        return self._url.rstrip("/")

    def negotiate(self, least: Version) -> None:
        """Select the newest microversion that both sides know.

        Raises :class:`Invalid` if that version is older than ``least``, or if the service is not
        a Placement API.
        """
        document = self.get("", version=None)
        try:
            (offered,) = document["versions"]
            newest = _parsed(offered["max_version"])
        except (KeyError, TypeError, ValueError) as error:
            raise Invalid(f"{self._whose()}: {NO_PLACEMENT}: it lists no versions.") from error
        if newest < least:
            raise Invalid(
                f"{self._whose()}: the newest microversion of the service is {newest}, but at "
                f"least {least} is required."
            )
        self.version = min(newest, Version(*NEWEST_KNOWN))

    def get(self, path: str, *, version: Version | None, **query: str) -> dict[str, Any]:
        """Send a GET request. Raises :class:`NotFound` and the other refusals."""
        asked = f"{path}?{urlencode(query)}" if query else path
        return self._call("GET", asked, None, version)

    def ask(self, path: str, **query: str) -> dict[str, Any]:
        """Send a GET request with the negotiated microversion."""
        return self.get(path, version=self.version, **query)

    def send(
        self, method: str, path: str, body: Any = None, *, version: Version | None = None
    ) -> dict[str, Any]:
        """Send a write request, with the negotiated microversion by default.

        Raises :class:`ConcurrentUpdate` if a generation is outdated. An earlier try of the same
        request may have succeeded and advanced the generation.
        """
        return self._call(method, path, body, version or self.version)

    def close(self) -> None:
        """Close the connections."""
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
                    return _result(asked, answer, token)
            self._wait(pause_s)
            pause_s = min(2 * pause_s, WAIT_MAX_S)
        raise AssertionError("the last try returns or raises")

    def _send_with_token(
        self, method: str, path: str, body: bytes | None, version: Version | None
    ) -> tuple[str | None, HttpResponse]:
        """Send a request with a token; returns the token and the response."""
        if version is None:
            return None, self._send(method, path, body, {})
        for is_renewed in (False, True):
            token = self._token()
            headers = {"openstack-api-version": f"placement {version}", "x-auth-token": token}
            answer = self._send(method, path, body, headers)
            if answer.status != HTTPStatus.UNAUTHORIZED or is_renewed:
                return token, answer
            self._login.renew()
        raise AssertionError("The second answer is returned in any case.")

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
            raise Invalid(f"{self._whose()}: the token contains invalid characters.")
        return token

    def _whose(self) -> str:
        return f"{self.name} ({self._url})" if self._url else self.name


def in_one_line(text: str, token: str | None = None) -> str:
    """Return a service's text as one short line for a message.

    If the text repeats the token, the token is hidden.
    """
    shown = "".join(char if char.isprintable() else " " for char in text)
    if token:
        shown = shown.replace(token, HIDDEN)
    return " ".join(shown.split())[:WORDS_MAX].removesuffix(".")


def _result(asked: str, answer: HttpResponse, token: str | None) -> dict[str, Any]:
    if answer.status < REFUSED:
        return _decoded(asked, answer)
    code, detail = _error_of(answer)
    message = f"{asked}: {answer.status} {in_one_line(detail, token)}."
    if code == CONCURRENT:
        raise ConcurrentUpdate(message)
    kind = REFUSALS.get(answer.status, Unavailable)
    raise kind(message)


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
        raise Invalid(f"{asked}: {NO_PLACEMENT}: it is not a JSON object.")
    return body


def _parsed(text: Any) -> Version:
    found = MICROVERSION.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return Version(int(found[1]), int(found[2]))


def _error_of(answer: HttpResponse) -> tuple[str | None, str]:
    try:
        (first, *_) = msgspec.json.decode(answer.body)["errors"]
        code, detail = first.get("code"), str(first["detail"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, answer.reason
        # The cause comes after a sentence that is the same for all errors with this status.
    sentence, separator, cause = detail.partition("\n\n")
    return code, cause if separator else sentence
