"""How a program of ours calls a Placement API, ours or OpenStack's own.

Always true: every call has a deadline. What may pass by itself (a broken connection, an
answer 500, 502, 503 or 504) is tried again a limited number of times, with longer and longer
waits; a token that is refused is renewed once per call. A request may therefore arrive twice:
whoever writes sends a generation along, or writes what may be written twice.

What is refused is raised as one of :mod:`innkeeper.domain.errors`, in one line.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx

from innkeeper.clients.logins import Login
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


class Version(NamedTuple):
    """A microversion; compares as numbers do."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class PlacementApi:
    """One Placement API and who asks it. Any number of threads may call at once.

    ``name`` is how messages call it. ``wait`` lets so many seconds pass.
    """

    def __init__(
        self,
        name: str,
        url: str | None,
        login: Login,
        *,
        timeout_s: float,
        connections_max: int,
        wait: Callable[[float], object],
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
        self._http = httpx.Client(
            timeout=timeout_s,
            limits=httpx.Limits(
                max_connections=connections_max, max_keepalive_connections=connections_max
            ),
            verify=trusted,
            trust_env=False,
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

    def settle_version(self, least: Version) -> None:
        """Ask for the versions there are and take the newest that both sides know.

        Raises :class:`Invalid` if that is older than ``least``, or if what answers is no
        Placement API.
        """
        document = self.get("", version=None)
        try:
            (offered,) = document["versions"]
            newest = _parsed(offered["max_version"])
        except (KeyError, TypeError, ValueError) as error:
            raise Invalid(f"{self._whose()}: what answers is no Placement API.") from error
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
        self._http.close()

    def _call(
        self, method: str, path: str, body: Any, version: Version | None
    ) -> dict[str, Any]:
        pause_s = FIRST_WAIT_S
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                answer = self._send_with_token(method, path, body, version)
            except (httpx.TransportError, OSError) as error:
                if not tries_left:
                    raise Unavailable(f"{self._whose()}: {_words(error)}.") from error
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise Invalid(f"{self._whose()}: {_words(error)}.") from error
            else:
                if answer.status_code not in PASSING or not tries_left:
                    return self._judged(method, path, answer)
            self._wait(pause_s)
            pause_s = min(2 * pause_s, WAIT_MAX_S)
        raise AssertionError("The last try answers or raises.")

    def _send_with_token(
        self, method: str, path: str, body: Any, version: Version | None
    ) -> httpx.Response:
        answer = self._send(method, path, body, version)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            self._login.renew()
            answer = self._send(method, path, body, version)
        return answer

    def _send(
        self, method: str, path: str, body: Any, version: Version | None
    ) -> httpx.Response:
        headers = {"accept": "application/json"}
        if version is not None:
            headers["openstack-api-version"] = f"placement {version}"
            headers["x-auth-token"] = self._token()
        return self._http.request(method, self.url + path, json=body, headers=headers)

    def _token(self) -> str:
        try:
            return self._login.token()
        except Refusal as refusal:
            raise Unavailable(f"{self._whose()}: {refusal.message}") from refusal

    def _judged(self, method: str, path: str, answer: httpx.Response) -> dict[str, Any]:
        if answer.is_success:
            return self._decoded(answer)
        code, detail = _told(answer)
        said = f"{self._whose()}: {method} {path or '/'}: {answer.status_code} {detail}"
        if code == CONCURRENT:
            raise ConcurrentUpdate(said)
        kind = REFUSALS.get(answer.status_code, Unavailable)
        raise kind(said)

    def _decoded(self, answer: httpx.Response) -> dict[str, Any]:
        if not answer.content:
            return {}
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise Invalid(f"{self._whose()}: what answers is no Placement API.")
        return body

    def _whose(self) -> str:
        return f"{self.name} ({self._url})" if self._url else self.name


def _parsed(text: Any) -> Version:
    major, _, minor = str(text).partition(".")
    return Version(int(major), int(minor))


def _words(error: Exception) -> str:
    return _in_one_line(str(error) or type(error).__name__).removesuffix(".")


def _told(answer: httpx.Response) -> tuple[str | None, str]:
    """The code and the cause in an error's body, as far as it has them."""
    try:
        (first, *_) = answer.json()["errors"]
        code, detail = first.get("code"), str(first["detail"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None, answer.reason_phrase
    # The cause follows a sentence that is the same for all errors of a status.
    sentence, separator, cause = detail.partition("\n\n")
    return code, _in_one_line(cause if separator else sentence)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())[:WORDS_MAX]
