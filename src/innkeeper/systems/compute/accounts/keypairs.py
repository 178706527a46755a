"""Keypairs: a user's public keys, which agents put into the servers that name them.

Always true: the private half of a key made here is in the answer to who asked for it, once,
and is kept nowhere.
"""

from __future__ import annotations

from innkeeper.domain.compute import UNLIMITED, Keypair
from innkeeper.domain.errors import AlreadyExists, Invalid, NotFound, QuotaExceeded
from innkeeper.store.queries.compute import keypairs
from innkeeper.store.transactions import Tx


def get(tx: Tx, user_id: str, name: str) -> Keypair:
    """One keypair of a user."""
    keypair = keypairs.get(tx, user_id, name)
    if keypair is None:
        raise NotFound(f"Keypair {name} not found for user {user_id}")
    return keypair


def page(tx: Tx, user_id: str, marker: str | None, limit: int) -> list[Keypair]:
    """At most ``limit`` keypairs of a user, by name, behind the one named ``marker``."""
    if marker is not None and keypairs.get(tx, user_id, marker) is None:
        raise Invalid(f"marker [{marker}] not found")
    return keypairs.page(tx, user_id, marker, limit)


def add(tx: Tx, keypair: Keypair, limit: int) -> Keypair:
    """Keep a user's public key; ``limit`` is how many one may have."""
    if keypairs.get(tx, keypair.user_id, keypair.name) is not None:
        raise AlreadyExists(f"Key pair '{keypair.name}' already exists.")
    if limit != UNLIMITED and keypairs.count(tx, keypair.user_id) >= limit:
        raise QuotaExceeded("Quota exceeded, too many key pairs.")
    keypairs.insert(tx, keypair)
    return keypair


def delete(tx: Tx, user_id: str, name: str) -> None:
    """Remove a keypair. Servers that were booted with it keep the key."""
    if not keypairs.delete(tx, user_id, name):
        raise NotFound(f"Keypair {name} not found for user {user_id}")
