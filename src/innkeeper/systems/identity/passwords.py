"""Hash and check passwords with argon2.

Always true: a check takes equally long for users that exist and users that do not exist. So the
time does not reveal which users exist. Both functions of this module are slow on purpose. Do not
call them on the event loop or in a transaction.
"""

from __future__ import annotations

import argon2

_HASHER = argon2.PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
"""Two passes over 19 MiB in one thread are a common minimum. Larger values would be too slow,
because OpenStack's command-line clients log in for each command. Concurrent logins must also fit
into the memory of a small machine."""

_NOBODYS_HASH = (
    f"$argon2id$v=19$m={_HASHER.memory_cost},t={_HASHER.time_cost},p={_HASHER.parallelism}"
    f"${'A' * 22}${'A' * 43}"
)
"""A hash and a salt whose bytes are all zero. They are written and not computed, because each start
of a program would wait for the computation."""


def hash_of(password: str) -> str:
    """Hash a password with a new salt."""
    return _HASHER.hash(password)


def verify(password_hash: str | None, password: str) -> bool:
    """Return True if a password matches a hash.

    A hash of ``None`` never matches, and the check takes equally long.
    """
    try:
        _HASHER.verify(password_hash or _NOBODYS_HASH, password)
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False
    # A user without a password has an empty hash, which no password matches.
    return bool(password_hash)
