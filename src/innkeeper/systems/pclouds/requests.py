"""Make requests idempotent: a repetition with the same client token changes nothing.

Always true: the response is stored in the same transaction as the changes of the request. For a
day, a repetition with the same token gets the stored response. A different request with the same
token is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from innkeeper.domain.errors import Conflict
from innkeeper.domain.pclouds import Pcloud
from innkeeper.store.queries.pclouds import pclouds
from innkeeper.store.transactions import Tx

KEPT = timedelta(days=1)
"""How long a response is stored. Clients retry within minutes, so a day is enough."""


def once(
    tx: Tx, pcloud: Pcloud, token: str, digest: str, act: Callable[[], Any], now: datetime
) -> Any:
    """Return the stored response of a request, or call ``act`` and store its response.

    ``digest`` is a hash, which is equal for equal requests. Raises :class:`Conflict` if the token
    was used for a different request. A refusal of ``act`` is not stored, so the request may be
    retried.
    """
    answer = answered(tx, pcloud, token, digest)
    if answer is None:
        answer = act()
        begin(tx, pcloud, token, digest, answer, now)
    return answer


def answered(tx: Tx, pcloud: Pcloud, token: str, digest: str) -> Any:
    """Return the stored response for a token, or ``None``.

    Raises :class:`Conflict` if the token was used for a different request.
    """
    found = pclouds.answered(tx, pcloud.id, token)
    if found is None:
        return None
    kept_digest, answer = found
    if kept_digest != digest:
        raise Conflict(f"The client token {token} was already used for another request.")
    return answer


def begin(tx: Tx, pcloud: Pcloud, token: str, digest: str, answer: Any, now: datetime) -> None:
    """Store the response to a request with a new token. The response may still be partial."""
    pclouds.remember(tx, pcloud.id, token, digest, answer, now)


def forget_old(tx: Tx, now: datetime) -> int:
    """Delete expired responses. Return the number of deleted responses."""
    return pclouds.forget_before(tx, now - KEPT)
