"""An agent's HTTP client for its service.

Always true: every call has a timeout that is longer than the time in which the service must
respond. If the service refuses a token, the client renews the token once per call.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import httpx

from innkeeper.clients.logins import TokenSource
from innkeeper.domain.errors import Conflict, Invalid, NotFound, Refusal, TooLarge, Unavailable

CALL_TIMEOUT_S = 15.0
REPORT_TIMEOUT_S = 60.0
"""The timeout of a report. The service needs long to store a report of 500 hosts, and longer while
other agents send reports too."""
POLL_EXTRA_S = 10.0
"""The number of seconds by which the timeout of a long poll exceeds the time in which the service
must answer."""
CONNECTIONS_MAX = 8
API = "/v2.1"
REFUSALS: Mapping[int, type[Refusal]] = {400: Invalid, 404: NotFound, 409: Conflict, 413: TooLarge}


class AgentApi:
    """Calls the service as an agent does. It is thread-safe."""

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
        """Register the agent; returns its id and its heartbeat interval."""
        body = {"agent": {"name": name, "driver": driver}}
        agent: dict[str, Any] = self._call("POST", "/os-agents", body)["agent"]
        return agent

    def report(self, agent_id: str, hosts: Sequence[Mapping[str, Any]]) -> None:
        """Report the current state of hosts."""
        path = f"/os-agents/{agent_id}/hosts"
        self._call("PUT", path, {"hosts": hosts}, REPORT_TIMEOUT_S)

    def heartbeat(self, agent_id: str) -> None:
        """Send a heartbeat."""
        self._call("POST", f"/os-agents/{agent_id}/heartbeat", None)

    def take_work(self, agent_id: str, after: int, wait_s: float) -> list[dict[str, Any]]:
        """Return orders with ids above ``after``.

        If there are no such orders, wait up to ``wait_s`` seconds for the first order.
        """
        path = f"/os-agents/{agent_id}/work"
        body = {"after": after, "wait_s": wait_s}
        orders: list[dict[str, Any]] = self._call("POST", path, body, wait_s + POLL_EXTRA_S)[
            "orders"
        ]
        return orders

    def report_results(self, agent_id: str, results: Sequence[Mapping[str, Any]]) -> None:
        """Report the results of orders."""
        self._call("POST", f"/os-agents/{agent_id}/results", {"results": results})

    def close(self) -> None:
        """Close the connections; calls in progress fail."""
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
            raise Unavailable(
                f"The service does not answer: {str(error) or type(error).__name__}."
            ) from error
        except RuntimeError as error:
            # httpx raises this error if the client was closed during the call.
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
                raise Invalid(
                    "The service's address is unknown: give --url, or use a login with a catalog."
                )
            self._url = found
        return self._url.rstrip("/").removesuffix(API) + API


def _decoded(answer: httpx.Response) -> dict[str, Any]:
    if not answer.content:
        return {}
    with suppress(ValueError):
        body = answer.json()
        if isinstance(body, dict):
            return body
    raise Unavailable("The response is not a JSON object: check the service's address.")


def _refusal(answer: httpx.Response) -> Refusal:
    try:
        (inner,) = answer.json().values()
        message = str(inner["message"])
    except (ValueError, AttributeError, KeyError, TypeError):
        message = answer.reason_phrase
    # Any other status, such as 401 or 403, counts as temporary: the operator can fix the cause
    # without restarting the agent.
    kind = REFUSALS.get(answer.status_code, Unavailable)
    return kind(f"{answer.status_code}: {message}")
