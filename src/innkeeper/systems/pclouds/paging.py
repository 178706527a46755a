"""Markers of pages.

Always true: a marker that does not exist and one that the caller may not see give the same error,
in the words of the Compute API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from innkeeper.domain.errors import Invalid, NotFound

T = TypeVar("T")


def marked(marker: str, find: Callable[[], T]) -> T:
    """The object that a marker names. Raises :class:`Invalid` if ``find`` does not find it."""
    try:
        return find()
    except NotFound as error:
        raise Invalid(f"marker [{marker}] not found") from error
