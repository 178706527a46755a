"""Resolve the markers of pages.

Always true: a marker that does not exist and a marker that the caller may not see lead to the same
error. The text of the error comes from the Compute API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from innkeeper.domain.errors import Invalid, NotFound

T = TypeVar("T")


def marked(marker: str, find: Callable[[], T]) -> T:
    """Return the object that ``find`` finds for a marker.

    Raises :class:`Invalid` if ``find`` raises :class:`NotFound`.
    """
    try:
        return find()
    except NotFound as error:
        raise Invalid(f"marker [{marker}] not found") from error
