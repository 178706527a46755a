"""The real clock and the real dice, which everything below is handed."""

from __future__ import annotations

import secrets
import uuid
from datetime import UTC, datetime


def now() -> datetime:
    """The present moment, in UTC, without a time zone."""
    return datetime.now(UTC).replace(tzinfo=None)


class RandomIds:
    """Identifiers nobody can guess."""

    def uuid(self) -> str:
        """See :class:`innkeeper.domain.ids.IdSource`."""
        return str(uuid.uuid4())

    def seed(self) -> int:
        """See :class:`innkeeper.domain.ids.IdSource`."""
        return secrets.randbits(63)
