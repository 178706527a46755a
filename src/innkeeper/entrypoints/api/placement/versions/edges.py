"""Helpers for the edges of microversion steps that several resources share."""

from __future__ import annotations

from collections.abc import Callable

from innkeeper.entrypoints.api.routing import Answer, Call

Up = Callable[[Call], None]
Down = Callable[[Answer, Call], None]


def without_in_body(*names: str) -> Down:
    """Return a downgrade that removes fields from a body."""

    def down(answer: Answer, _call: Call) -> None:
        for name in names:
            answer.body.pop(name, None)

    return down
