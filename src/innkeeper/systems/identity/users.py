"""Create, find, change and delete users.

Always true: these functions get hashes of passwords, not passwords. Callers hash before the
transaction begins, because hashing is slow on purpose. When a user's password is changed, or the
user is disabled or deleted, the user's tokens are revoked.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import NotFound, Unauthenticated
from innkeeper.domain.identity import User
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity import attempts
from innkeeper.systems.identity.names import could_be_stored


def create(tx: Tx, user: User) -> User:
    """Add a user. Raises :class:`AlreadyExists` if the name is in use."""
    identity.add_user(tx, user)
    return user


def get(tx: Tx, user_id: str) -> User:
    """Return the user with this id. Raises :class:`NotFound`."""
    found = identity.user(tx, user_id) if could_be_stored(user_id) else None
    if found is None:
        raise NotFound(f"Could not find user: {user_id}.")
    return found


def find(tx: Tx, *, name: str | None = None, is_enabled: bool | None = None) -> list[User]:
    """Return the users with this name and state, sorted by name. ``None`` allows all."""
    if name is not None and not could_be_stored(name):
        return []
    return identity.find_users(tx, name=name, is_enabled=is_enabled)


def update(tx: Tx, user_id: str, changes: Mapping[str, Any], *, now: datetime) -> User:
    """Change fields of a user.

    If the password changes, or the user is disabled, all of the user's tokens are revoked.
    """
    get(tx, user_id)
    identity.update_user(tx, user_id, changes)
    if "password_hash" in changes or changes.get("is_enabled") is False:
        identity.void_tokens(tx, [user_id], now)
    if "password_hash" in changes:
        attempts.forgive(tx, user_id)
    return get(tx, user_id)


def change_password(tx: Tx, user_id: str, *, old_hash: str, new_hash: str, now: datetime) -> None:
    """Change the password of a user, if the stored hash is still ``old_hash``.

    The caller has checked the old password against ``old_hash``. Raises :class:`Unauthenticated` if
    the stored hash is another one.
    """
    if get(tx, user_id).password_hash != old_hash:
        raise Unauthenticated("The password was changed in the meantime.")
    update(tx, user_id, {"password_hash": new_hash}, now=now)


def delete(tx: Tx, user_id: str) -> None:
    """Delete a user and the user's roles. Resources that the user created are kept."""
    get(tx, user_id)
    identity.delete_user(tx, user_id)
