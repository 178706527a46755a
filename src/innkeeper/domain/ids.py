"""Typed identifiers, and the sources of new ones that the core is handed.

Always true: the core never invents an id or reads a clock by itself. Whoever calls it hands
in an :class:`IdSource` and the present moment, so that a decision can be replayed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple, NewType, Protocol

ProviderId = NewType("ProviderId", int)
"""Row id of a resource provider; never leaves the store and the snapshot."""
ProviderUuid = NewType("ProviderUuid", str)
ClassId = NewType("ClassId", int)
TraitId = NewType("TraitId", int)
ConsumerUuid = NewType("ConsumerUuid", str)
Generation = NewType("Generation", int)
ChangeId = NewType("ChangeId", int)

ServerId = NewType("ServerId", str)
AgentId = NewType("AgentId", str)
HostIndex = NewType("HostIndex", int)
"""Row of a host in the host table; only meaningful together with that table."""


class Bookmark(NamedTuple):
    """Up to where somebody has read the change feed: the number of the last row, its moment."""

    id: ChangeId
    told_at: datetime | None


BEGINNING = Bookmark(ChangeId(0), None)
"""Before the first row of the change feed."""

Clock = Callable[[], datetime]
"""Gives the present moment as a naive datetime in UTC."""

UUID_PATTERN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LOOSE_UUID = re.compile(r"[0-9a-fA-F]{32}")


class IdSource(Protocol):
    """Makes new identifiers. Production draws them at random; a simulation counts."""

    def uuid(self) -> str:
        """Give a new UUID in its usual form, with dashes; later ones sort behind earlier."""

    def seed(self) -> int:
        """Give a new seed for a decision's random generator: 63 bits."""


def canonical_uuid(text: str) -> str | None:
    """Bring a UUID to its usual form; ``None`` if it is none.

    It may lack its dashes, stand in braces, or be written as a URN.
    """
    if UUID_PATTERN.fullmatch(text) is not None:
        return text
    bare = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    if _LOOSE_UUID.fullmatch(bare) is None:
        return None
    bare = bare.lower()
    return f"{bare[:8]}-{bare[8:12]}-{bare[12:16]}-{bare[16:20]}-{bare[20:]}"


def is_uuid(text: str) -> bool:
    """Tell whether ``text`` is a UUID, in any form that :func:`canonical_uuid` takes."""
    return canonical_uuid(text) is not None
