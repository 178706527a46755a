"""Idempotent requests: repeating one with the same client token does nothing twice.

Always true: the response is written together with what the request did, and repeated for a day to
the same request with the same token. Another request with that token is refused.
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
"""Clients retry within minutes, not after a day."""


def once(
    tx: Tx, pcloud: Pcloud, token: str, digest: str, act: Callable[[], Any], now: datetime
) -> Any:
    """Carry out a request, or return the response of the first time.

    ``digest`` is equal for equal requests. Raises :class:`Conflict` if the token was used for
    another request. A refusal is not kept, so the request may be retried.
    """
    answer = answered(tx, pcloud, token, digest)
    if answer is None:
        answer = act()
        begin(tx, pcloud, token, digest, answer, now)
    return answer


def answered(tx: Tx, pcloud: Pcloud, token: str, digest: str) -> Any:
    """The response kept for a token, if any. Raises :class:`Conflict` for another request."""
    found = pclouds.answered(tx, pcloud.id, token)
    if found is None:
        return None
    kept_digest, answer = found
    if kept_digest != digest:
        raise Conflict(f"The client token {token} was already used for another request.")
    return answer


def begin(tx: Tx, pcloud: Pcloud, token: str, digest: str, answer: Any, now: datetime) -> None:
    """Keep the response for a new token, complete or so far."""
    pclouds.remember(tx, pcloud.id, token, digest, answer, now)


def forget_old(tx: Tx, now: datetime) -> int:
    """Delete expired responses; return how many."""
    return pclouds.forget_before(tx, now - KEPT)
