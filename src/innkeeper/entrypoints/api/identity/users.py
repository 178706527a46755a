"""Handlers of users and their passwords.

Always true: a password is hashed before the write begins, and is never shown. Attempts to log in as
one user from one source run one at a time, so that a wrong password is counted before the next
attempt begins. After too many failures, an attempt is rejected without computing a hash.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from innkeeper.domain.errors import Unauthenticated, Unavailable
from innkeeper.domain.identity import DEFAULT_DOMAIN_ID, User
from innkeeper.engine import callers
from innkeeper.entrypoints.api.identity import conventions
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import attempts, users
from innkeeper.systems.identity.attempts import AttemptLimits

NO_PASSWORD = ""


async def is_password_of(call: Call, user: User | None, name: str, password: str) -> bool:
    """Return whether ``password`` is the user's password.

    If ``user`` is ``None``, the user is unknown, and no password is correct.

    Failures of an unknown user are counted under ``name``, which is the name in the request. Raises
    :class:`TooManyAttempts` after too many failures from the same source.
    """
    settings = call.site.settings.authenticating
    limits = AttemptLimits(settings.login_failures_free, settings.login_wait_max_s)
    attempt = attempts.attempt(name if user is None else user.id, call.client)
    password_hash = None if user is None else user.password_hash
    # Count a failure even if the client disconnects. Otherwise, a client that disconnects early
    # could guess without being counted.
    callers.current().must_finish()
    async with call.site.passwords.turn(attempt, attempt.source):
        now = call.site.clock()
        failures = await call.read(lambda tx: attempts.check(tx, attempt, limits, now))
        if not await call.site.passwords.verify(password_hash, password):
            await call.write(lambda tx: attempts.fail(tx, attempt, limits, now))
            return False
        if failures:
            # A correct password is accepted even while the database accepts no writes.
            with suppress(Unavailable):
                await call.write(lambda tx: attempts.succeed(tx, attempt))
    return True


def _view(call: Call, user: User) -> dict[str, Any]:
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
    changes = conventions.changes(fields, "name", "email", "default_project_id")
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
    return conventions.listed(call, "users", [_view(call, each) for each in found])


async def show(call: Call) -> Answer:
    """Show a user."""
    user_id = call.params["user_id"]
    call.demand("identity:get_user", user_id=user_id)
    user = await call.read(lambda tx: users.get(tx, user_id))
    return Answer(200, {"user": _view(call, user)})


async def create(call: Call) -> Answer:
    """Create a user.

    A user without a password cannot log in.
    """
    changes = await _changes(call, call.body["user"])
    new = User(
        id=conventions.new_id(call),
        tokens_valid_from=call.now,
        created_at=call.now,
        **{"password_hash": NO_PASSWORD, **changes},
    )
    user = await call.write(lambda tx: users.create(tx, new))
    return Answer(201, {"user": _view(call, user)})


async def update(call: Call) -> Answer:
    """Change a user."""
    user_id = call.params["user_id"]
    changes = await _changes(call, call.body["user"])
    user = await call.write(lambda tx: users.update(tx, user_id, changes, now=call.now))
    call.site.authenticator.forget()
    return Answer(200, {"user": _view(call, user)})


async def delete(call: Call) -> Answer:
    """Delete a user."""
    await call.write(lambda tx: users.delete(tx, call.params["user_id"]))
    call.site.authenticator.forget()
    return Answer(204)


async def change_password(call: Call) -> Answer:
    """Change the caller's password."""
    user_id, fields = call.params["user_id"], call.body["user"]
    call.demand("identity:change_password", user_id=user_id)
    user = await call.read(lambda tx: users.get(tx, user_id))
    if not await is_password_of(call, user, user_id, fields["original_password"]):
        raise Unauthenticated("The original password is wrong.")
    new_hash = await call.site.passwords.hash_of(fields["password"])
    await call.write(
        lambda tx: users.change_password(
            tx, user_id, old_hash=user.password_hash, new_hash=new_hash, now=call.now
        )
    )
    call.site.authenticator.forget()
    return Answer(204)
