"""Proving to be somebody by a password, in no more attempts than are allowed.

Always true: an attempt that has to wait costs no hash, whether its password is right or not;
all others are counted, or found right, before the next one of the same kind begins.
"""

from __future__ import annotations

from contextlib import suppress

from innkeeper.domain.errors import Unavailable
from innkeeper.domain.identity import User
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.identity import attempts
from innkeeper.systems.identity.attempts import AttemptLimits


async def is_right(call: Call, user: User | None, name: str, password: str) -> bool:
    """Whether it is the password of ``user``; never where there is none of that ``name``.

    Raises :class:`TooManyAttempts` for who failed too often from the same place.
    """
    authenticating = call.site.settings.authenticating
    limits = AttemptLimits(authenticating.login_failures_free, authenticating.login_wait_max_s)
    tried = attempts.attempt(name if user is None else user.id, call.client)
    password_hash = None if user is None else user.password_hash
    async with call.site.passwords.turn(tried, tried.source):
        now = call.site.clock()
        failures = await call.read(lambda tx: attempts.check(tx, tried, limits, now))
        if not await call.site.passwords.verify(password_hash, password):
            await call.write(lambda tx: attempts.fail(tx, tried, limits, now))
            return False
        if failures:
            # What is right stays right while nothing can be written.
            with suppress(Unavailable):
                await call.write(lambda tx: attempts.succeed(tx, tried))
    return True
