"""Resolve the markers of pages.

Always true: the error is the same for a marker that does not exist and for a marker that the caller
may not see. The text of the error comes from the Compute API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from innkeeper.domain.errors import Invalid, NotFound

T = TypeVar("T")


def marked(marker: str, find: Callable[[], T]) -> T:
    """Return the object that ``find`` finds for a marker. Raises :class:`Invalid` for no object."""
    try:
        return find()
    except NotFound as error:
        raise Invalid(f"marker [{marker}] not found") from error
