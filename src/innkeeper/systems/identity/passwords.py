"""Passwords as argon2 hashes.

Always true: checking takes the same time whether or not there is a hash to check against, so
that nobody learns by the clock which users exist. Both functions are slow on purpose: call
them neither on the event loop nor inside a transaction.
"""

from __future__ import annotations

import argon2

_HASHER = argon2.PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
"""Twice over 19 MiB in one thread, a usual minimum: the stock clients log in once for every
command, and memory times the logins at one moment must fit into a small machine."""

_NOBODYS_HASH = _HASHER.hash("nobody")


def hash_of(password: str) -> str:
    """Hash a password, with a salt of its own."""
    return _HASHER.hash(password)


def verify(password_hash: str | None, password: str) -> bool:
    """Whether a password belongs to a hash; never if there is none, after the same time."""
    try:
        _HASHER.verify(password_hash or _NOBODYS_HASH, password)
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False
    # A user without a password has an empty hash, which nothing matches.
    return bool(password_hash)
