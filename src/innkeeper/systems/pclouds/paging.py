"""Where the pages of lists begin: behind something that is there.

Always true: what is not there, and what is not for the caller to know of, are refused in the
words in which other lists of the Compute API refuse them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from innkeeper.domain.errors import Invalid, NotFound

T = TypeVar("T")


def found(marker: str, find: Callable[[], T]) -> T:
    """What a page begins behind; :class:`Invalid` where looking for it finds nothing."""
    try:
        return find()
    except NotFound as error:
        raise Invalid(f"marker [{marker}] not found") from error
