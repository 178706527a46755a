"""Requests that clients gave names, so that repeating one does nothing twice.

Always true: what was answered under a name is written with what was done, and given again to
whoever asks the same under that name, for a day. Something else under the same name is refused.
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
"""Who tries again does so within minutes; who comes after a day has forgotten what he asked."""


def once(
    tx: Tx, pcloud: Pcloud, token: str, asked: str, act: Callable[[], Any], now: datetime
) -> Any:
    """Do what is asked under a name, or give what was answered when it was done.

    ``asked`` is the same for the same request. Raises :class:`Conflict` where the name stands
    for another one. A refusal is not kept: the same may be asked again.
    """
    answer = answered(tx, pcloud, token, asked)
    if answer is None:
        answer = act()
        begin(tx, pcloud, token, asked, answer, now)
    return answer


def answered(tx: Tx, pcloud: Pcloud, token: str, asked: str) -> Any:
    """What was answered under a name, whole or so far; ``None`` where nothing is kept.

    Raises :class:`Conflict` where the name stands for another request.
    """
    found = pclouds.answered(tx, pcloud.id, token)
    if found is None:
        return None
    hash_, answer = found
    if hash_ != asked:
        raise Conflict(f"The client token {token} stands for another request already.")
    return answer


def begin(tx: Tx, pcloud: Pcloud, token: str, asked: str, answer: Any, now: datetime) -> None:
    """Write what is answered under a name of which nothing is kept, whole or so far."""
    pclouds.remember(tx, pcloud.id, token, asked, answer, now)


def go_on(tx: Tx, pcloud: Pcloud, token: str, answer: Any) -> None:
    """Write what is answered under a name by now, in place of what was so far."""
    pclouds.change_answer(tx, pcloud.id, token, answer)


def forget_old(tx: Tx, now: datetime) -> int:
    """Forget what was answered long ago; give how many."""
    return pclouds.forget_before(tx, now - KEPT)
