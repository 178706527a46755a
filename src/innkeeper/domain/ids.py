"""Typed identifiers, and the sources of new ids and times.

Always true: the core generates no ids and reads no clock. The caller passes an :class:`IdSource`
and the present time, so that a decision can be replayed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple, NewType, Protocol

ProviderId = NewType("ProviderId", int)
"""The row id of a resource provider. It is internal and not part of any API."""
ProviderUuid = NewType("ProviderUuid", str)
ClassId = NewType("ClassId", int)
TraitId = NewType("TraitId", int)
ConsumerUuid = NewType("ConsumerUuid", str)
Generation = NewType("Generation", int)
ChangeId = NewType("ChangeId", int)

ServerId = NewType("ServerId", str)
AgentId = NewType("AgentId", str)
HostIndex = NewType("HostIndex", int)
"""The row number of a host in one host table. The number is valid only in this table."""


class Bookmark(NamedTuple):
    """A position in the change feed: the id and the time of the last row that was read."""

    id: ChangeId
    told_at: datetime | None


BEGINNING = Bookmark(ChangeId(0), None)
"""The position before the first row of the change feed."""

Clock = Callable[[], datetime]
"""Returns the present time as a naive datetime in UTC."""

UUID_PATTERN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LOOSE_UUID = re.compile(r"[0-9a-fA-F]{32}")


class IdSource(Protocol):
    """Generates identifiers. They are random in production, and sequential in simulations."""

    def uuid(self) -> str:
        """Return a new UUID in canonical form. Later UUIDs sort after earlier ones."""

    def seed(self) -> int:
        """Return a new 63-bit seed for the random choices of a decision."""


def canonical_uuid(text: str) -> str | None:
    """Normalize a UUID without dashes, in braces or as a URN. Return ``None`` for other text."""
    if UUID_PATTERN.fullmatch(text) is not None:
        return text
    bare = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    if _LOOSE_UUID.fullmatch(bare) is None:
        return None
    bare = bare.lower()
    return f"{bare[:8]}-{bare[8:12]}-{bare[12:16]}-{bare[16:20]}-{bare[20:]}"


def is_uuid(text: str) -> bool:
    """Return whether ``text`` is a UUID in any form that :func:`canonical_uuid` accepts."""
    return canonical_uuid(text) is not None


SEED_BITS = 63
SECRET_BYTES = 32
_SEEDS = 5
"""The number of 63-bit random numbers from which a secret is made. Together, they have at least 256
bits."""
assert SEED_BITS * _SEEDS >= 8 * SECRET_BYTES


def secret_bytes(ids: IdSource) -> bytes:
    """Return 256 unpredictable bits."""
    number = 0
    for _ in range(_SEEDS):
        number = number << SEED_BITS | ids.seed()
    return (number & (1 << 8 * SECRET_BYTES) - 1).to_bytes(SECRET_BYTES, "big")
