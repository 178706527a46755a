"""The identity room's invariants, checked against the store."""

from __future__ import annotations

from collections.abc import Iterator

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Tx

ROOM = "identity"
PREFIX = "$argon2"
UNHASHED_PASSWORD = Invariant(
    ROOM,
    "unhashed-password",
    "passwords are kept as argon2 hashes",
    "Give the user another password, and take what was kept for known to others.",
)
INVARIANTS = (UNHASHED_PASSWORD,)


def findings(tx: Tx) -> Iterator[Finding]:
    """Everything about users that is not as it must be."""
    for row_id, name in identity.unhashed_passwords(tx, PREFIX):
        yield UNHASHED_PASSWORD.broken(row_id, f"that of {name} is not")
