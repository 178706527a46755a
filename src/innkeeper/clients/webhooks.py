"""Posts signed messages to an operator's webhook.

Always true: a post ends within its timeout, and redirects are not followed. The secret itself is
never sent: a signature proves that the sender knows the secret.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from innkeeper.clients.certificates import trust_of
from innkeeper.clients.wire import REFUSED, Broken, Unfit, Wire

TIMEOUT_S = 5.0
DELIVERY = "x-innkeeper-delivery"
TIMESTAMP = "x-innkeeper-timestamp"
SIGNATURE = "x-innkeeper-signature"
PREFIX = "sha256="
OK = 200


class Webhook:
    """A client for one address. It is thread-safe. ``clock`` returns monotonic seconds."""

    def __init__(self, url: str, secret: str | None, clock: Callable[[], float]) -> None:
        self._url = url
        self._secret = secret
        self._wire = Wire(
            timeout_s=TIMEOUT_S, connections_max=1, trusted=trust_of(None, None, None), clock=clock
        )

    def post(self, delivery: str, body: bytes, timestamp: int) -> str | None:
        """Post a JSON body.

        Return the reason why the receiver did not accept the body, or ``None`` if the body was
        accepted. ``delivery`` is the id of the message: it stays the same when the message is
        posted again. ``timestamp`` is the present time in seconds since 1970.
        """
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            DELIVERY: delivery,
            TIMESTAMP: str(timestamp),
        }
        if self._secret is not None:
            headers[SIGNATURE] = signature(self._secret, timestamp, body)
        try:
            answer = self._wire.exchange("POST", self._url, headers, body)
        except (Broken, Unfit) as error:
            return str(error)
        return None if OK <= answer.status < REFUSED else f"status {answer.status}"

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a body: HMAC-SHA256 over the timestamp, a dot and the body."""
    signed = str(timestamp).encode() + b"." + body
    return PREFIX + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
