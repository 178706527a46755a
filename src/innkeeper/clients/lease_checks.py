"""Asks an operator's service whether a new or changed lease is allowed, and reports ended leases.

Source: the external filter of Blazar. Always true: every request has a deadline. Of an answer, the
client reads only the status and a short message. The client is thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any

import msgspec
import structlog

from innkeeper.clients.certificates import trust_of
from innkeeper.clients.wire import Broken, Unfit, Wire

LOG = structlog.get_logger("innkeeper.leases")
CREATE, UPDATE, END = "check-create", "check-update", "on-end"
"""The paths of the requests about a new lease, a changed lease and the end of a lease."""
MESSAGE_MAX = 400
"""At most this many characters of the service's message are shown to API clients."""
CONNECTIONS_MAX = 8


class CheckVerdict(Enum):
    """The verdict of the service. ``UNKNOWN`` means that the service gave no usable answer."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """The answer of the service. ``message`` is for the API client, and may be empty."""

    verdict: CheckVerdict
    message: str = ""


class _Denial(msgspec.Struct):
    message: str = ""


_DECODER = msgspec.json.Decoder(_Denial)


class LeaseCheckClient:
    """The service at ``url``; ``token`` is sent as ``X-Auth-Token``.

    ``clock`` returns monotonic seconds.
    """

    def __init__(
        self, url: str, *, token: str | None, timeout_s: float, clock: Callable[[], float]
    ) -> None:
        self._url = url.rstrip("/")
        self._headers = {"content-type": "application/json", "accept": "application/json"}
        if token is not None:
            self._headers["x-auth-token"] = token
        self._wire = Wire(
            timeout_s=timeout_s,
            connections_max=CONNECTIONS_MAX,
            trusted=trust_of(None, None, None),
            clock=clock,
        )

    def ask(self, path: str, body: Mapping[str, Any]) -> CheckAnswer:
        """Ask about a lease: 204 allows it, and 403 denies it. Other responses are not usable.

        Failures are logged.
        """
        address = f"{self._url}/{path}"
        try:
            answer = self._wire.exchange("POST", address, self._headers, msgspec.json.encode(body))
        except (Broken, Unfit) as error:
            LOG.warning("lease_check_silent", url=address, reason=str(error))
            return CheckAnswer(CheckVerdict.UNKNOWN)
        if answer.status == HTTPStatus.NO_CONTENT:
            return CheckAnswer(CheckVerdict.ALLOWED)
        if answer.status == HTTPStatus.FORBIDDEN:
            return CheckAnswer(CheckVerdict.DENIED, _message(bytes(answer.body)))
        LOG.warning("lease_check_unclear", url=address, status=answer.status)
        return CheckAnswer(CheckVerdict.UNKNOWN)


def _message(body: bytes) -> str:
    try:
        text = _DECODER.decode(body).message
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    printable = "".join(each if each.isprintable() else " " for each in text[:MESSAGE_MAX])
    return printable.strip()
