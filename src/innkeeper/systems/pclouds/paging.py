"""Markers of pages.

Always true: the error is the same for a marker that does not exist and for a marker that the caller
may not see. Its text is that of the Compute API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from innkeeper.domain.errors import Invalid, NotFound

T = TypeVar("T")


def marked(marker: str, find: Callable[[], T]) -> T:
    """Return the object that a marker names. Raises :class:`Invalid` if it is not found."""
    try:
        return find()
    except NotFound as error:
        raise Invalid(f"marker [{marker}] not found") from error
