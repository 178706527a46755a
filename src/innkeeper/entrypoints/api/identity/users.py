"""Users and their passwords.

Always true: a password is hashed before the write begins, and shown to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import Unauthenticated
from innkeeper.domain.identity import DEFAULT_DOMAIN_ID, User
from innkeeper.entrypoints.api.identity import conventions, password_checks
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import users

NO_PASSWORD = ""


def view(call: Call, user: User) -> dict[str, Any]:
    """A user as the API shows it."""
    shown: dict[str, Any] = {
        "id": user.id,
        "name": user.name,
        "domain_id": DEFAULT_DOMAIN_ID,
        "enabled": user.is_enabled,
        "password_expires_at": None,
        "options": {},
        "links": conventions.self_link(call, "users", user.id),
    }
    optional = {
        "email": user.email,
        "description": user.description or None,
        "default_project_id": user.default_project_id,
    }
    return {**shown, **{key: value for key, value in optional.items() if value is not None}}


async def _changes(call: Call, fields: Mapping[str, Any]) -> dict[str, Any]:
    conventions.check_domain(fields)
    changes: dict[str, Any] = {
        key: fields[key] for key in ("name", "email", "default_project_id") if key in fields
    }
    if "description" in fields:
        changes["description"] = fields["description"] or ""
    if "enabled" in fields:
        changes["is_enabled"] = fields["enabled"]
    if "password" in fields:
        password = fields["password"]
        changes["password_hash"] = (
            NO_PASSWORD if password is None else await call.site.passwords.hash_of(password)
        )
    return changes


async def find(call: Call) -> Answer:
    """List users."""
    name, is_enabled = call.last("name"), conventions.yes_or_no(call.last("enabled"))
    found: list[User] = []
    if not conventions.is_elsewhere(call):
        found = await call.read(lambda tx: users.find(tx, name=name, is_enabled=is_enabled))
    return Answer(200, conventions.listed(call, "users", [view(call, each) for each in found]))


async def show(call: Call) -> Answer:
    """Show a user."""
    user_id = call.params["user_id"]
    call.demand("identity:get_user", user_id=user_id)
    user = await call.read(lambda tx: users.get(tx, user_id))
    return Answer(200, {"user": view(call, user)})


async def create(call: Call) -> Answer:
    """Create a user; without a password nobody can log in as that user."""
    changes = await _changes(call, call.body["user"])
    wanted = User(
        id=conventions.new_id(call),
        tokens_valid_from=call.now,
        created_at=call.now,
        **{"password_hash": NO_PASSWORD, **changes},
    )
    user = await call.write(lambda tx: users.create(tx, wanted))
    return Answer(201, {"user": view(call, user)})


async def update(call: Call) -> Answer:
    """Change a user."""
    user_id = call.params["user_id"]
    changes = await _changes(call, call.body["user"])
    user = await call.write(lambda tx: users.update(tx, user_id, changes, now=call.now))
    call.site.authenticator.forget()
    return Answer(200, {"user": view(call, user)})


async def delete(call: Call) -> Answer:
    """Delete a user."""
    await call.write(lambda tx: users.delete(tx, call.params["user_id"]))
    call.site.authenticator.forget()
    return Answer(204)


async def change_password(call: Call) -> Answer:
    """Change one's own password, knowing the old one."""
    user_id = call.params["user_id"]
    call.demand("identity:change_password", user_id=user_id)
    fields = call.body["user"]
    passwords = call.site.passwords
    user = await call.read(lambda tx: users.get(tx, user_id))
    if not await password_checks.is_right(call, user, user_id, fields["original_password"]):
        raise Unauthenticated("The original password is wrong.")
    new_hash = await passwords.hash_of(fields["password"])
    await call.write(
        lambda tx: users.change_password(
            tx, user_id, old_hash=user.password_hash, new_hash=new_hash, now=call.now
        )
    )
    call.site.authenticator.forget()
    return Answer(204)
