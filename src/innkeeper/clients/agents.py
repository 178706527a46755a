"""How an agent calls its service.

Always true: every call has a deadline, longer than the service may take to answer; a token
that is refused is renewed once per call.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from innkeeper.clients.logins import TokenSource
from innkeeper.domain.errors import Conflict, Invalid, NotFound, Refusal, TooLarge, Unavailable

CALL_TIMEOUT_S = 15.0
REPORT_TIMEOUT_S = 60.0
"""Five hundred hosts take a moment to write, and others may be writing too."""
POLL_EXTRA_S = 10.0
"""How much longer than the service one waits for an answer about work."""
CONNECTIONS_MAX = 8
API = "/v2.1"


class AgentApi:
    """The agent's side of the protocol. Any number of threads may call at once."""

    def __init__(self, url: str | None, login: TokenSource, trust: ssl.SSLContext) -> None:
        self._url = url
        self._login = login
        self._http = httpx.Client(
            timeout=CALL_TIMEOUT_S,
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX),
            verify=trust,
            trust_env=False,
        )

    def register(self, name: str, driver: str) -> dict[str, Any]:
        """Make the agent known; gives its id and how often it must be heard."""
        body = {"agent": {"name": name, "driver": driver}}
        agent: dict[str, Any] = self._call("POST", "/os-agents", body)["agent"]
        return agent

    def report(self, agent_id: str, hosts: Sequence[Mapping[str, Any]]) -> None:
        """Report hosts."""
        path = f"/os-agents/{agent_id}/hosts"
        self._call("PUT", path, {"hosts": hosts}, REPORT_TIMEOUT_S)

    def beat(self, agent_id: str) -> None:
        """Be heard."""
        self._call("POST", f"/os-agents/{agent_id}/heartbeat", None)

    def take_work(self, agent_id: str, after: int, wait_s: float) -> list[dict[str, Any]]:
        """The orders behind a number; waits for some if there are none."""
        path = f"/os-agents/{agent_id}/work"
        body = {"after": after, "wait_s": wait_s}
        orders: list[dict[str, Any]] = self._call("POST", path, body, wait_s + POLL_EXTRA_S)[
            "orders"
        ]
        return orders

    def tell_results(self, agent_id: str, results: Sequence[Mapping[str, Any]]) -> None:
        """Tell how orders ended."""
        self._call("POST", f"/os-agents/{agent_id}/results", {"results": results})

    def close(self) -> None:
        """Let go of the connections; calls in progress fail."""
        self._http.close()

    def _call(
        self, method: str, path: str, body: Any, timeout_s: float = CALL_TIMEOUT_S
    ) -> dict[str, Any]:
        try:
            answer = self._send(method, path, body, timeout_s)
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                self._login.renew()
                answer = self._send(method, path, body, timeout_s)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unavailable(f"The service does not answer: {_words(error)}.") from error
        except RuntimeError as error:
            # The client says so when it was closed while the call was made.
            raise Unavailable("The agent is stopping.") from error
        if answer.is_success:
            return _decoded(answer)
        raise _refusal(answer)

    def _send(self, method: str, path: str, body: Any, timeout_s: float) -> httpx.Response:
        return self._http.request(
            method,
            self._address() + path,
            json=body,
            headers={"x-auth-token": self._login.token()},
            timeout=timeout_s,
        )

    def _address(self) -> str:
        if self._url is None:
            found = self._login.service_url("compute")
            if found is None:
                raise Invalid("Where the service is was not said, and no catalog says it.")
            self._url = found
        return self._url.rstrip("/").removesuffix(API) + API


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _decoded(answer: httpx.Response) -> dict[str, Any]:
    if not answer.content:
        return {}
    try:
        body = answer.json()
    except ValueError as error:
        raise Unavailable("What answers is not the service.") from error
    if not isinstance(body, dict):
        raise Unavailable("What answers is not the service.")
    return body


def _refusal(answer: httpx.Response) -> Refusal:
    try:
        (inner,) = answer.json().values()
        message = str(inner["message"])
    except (ValueError, AttributeError, KeyError, TypeError):
        message = answer.reason_phrase
    said = f"{answer.status_code}: {message}"
    if answer.status_code == httpx.codes.NOT_FOUND:
        return NotFound(said)
    if answer.status_code == httpx.codes.CONFLICT:
        return Conflict(said)
    if answer.status_code == httpx.codes.BAD_REQUEST:
        return Invalid(said)
    if answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
        return TooLarge(said)
    # A refused token, a refused right and an accident are all waited out: an operator can
    # mend each of them without touching the agent.
    return Unavailable(said)
