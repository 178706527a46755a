"""Check the invariants of users in the database."""

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
    "passwords are stored as argon2 hashes",
    "Change the user's password, and treat the old password as compromised.",
)
INVARIANTS = (UNHASHED_PASSWORD,)


def findings(tx: Tx) -> Iterator[Finding]:
    for row_id, name in identity.unhashed_passwords(tx, PREFIX):
        yield UNHASHED_PASSWORD.broken(row_id, f"the password of {name} is not hashed")
