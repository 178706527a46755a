"""Public keys of users."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Keypair:
    """A user's public key. It is injected into the servers whose boot request names it."""

    user_id: str
    name: str
    key_type: str
    public_key: str
    fingerprint: str
    created_at: datetime
    id: int = 0
