"""Closes the databases that a test leaves open.

Python 3.13 warns of a SQLite connection that is removed by the garbage collector before it is
closed. The warning is an error of the test that happens to run at that moment, which is rarely the
test that opened the connection.

Always true: a database that a module's fixture opened before the test stays open.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar


class Closable(Protocol):
    """A store, or an engine."""

    def dispose(self) -> None:
        """Close all connections."""


Opened = TypeVar("Opened", bound=Closable)
_OPEN: dict[int, Closable] = {}
"""In the order in which they were opened."""


def note(opened: Opened) -> Opened:
    """Close this at the end of the test, unless :func:`dispose` closes it earlier."""
    _OPEN[id(opened)] = opened
    return opened


def dispose(opened: Closable) -> None:
    """Close something before the end of the test."""
    _OPEN.pop(id(opened), None)
    opened.dispose()


@contextmanager
def closed() -> Iterator[None]:
    """Close, when the block ends, everything that was opened in the block and is still open."""
    before = set(_OPEN)
    yield
    for key in [each for each in _OPEN if each not in before]:
        _OPEN.pop(key).dispose()
