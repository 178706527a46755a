"""Resolve the markers of pages.

Always true: a marker that does not exist, and a marker that the caller may not see, have the same
error. The error's text is that of the Compute API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from innkeeper.domain.errors import Invalid, NotFound

T = TypeVar("T")


def marked(marker: str, find: Callable[[], T]) -> T:
    """Return what ``find`` returns for a marker. Raises :class:`Invalid` if it finds nothing."""
    try:
        return find()
    except NotFound as error:
        raise Invalid(f"marker [{marker}] not found") from error
