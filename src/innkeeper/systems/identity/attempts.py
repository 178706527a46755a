"""Limit password guessing: after a few failures, each further attempt has to wait longer.

Consecutive failures are counted for each pair of user and source address. An attacker at another
address does not delay the user. An attacker at the user's address delays the user by at most the
longest wait.

Always true: attempts with unknown names are counted and answered like attempts with known names.
There are at most :data:`ROWS_MAX` counts. At this limit, a new count replaces the count whose last
failure is oldest. An attempt during a wait is refused without being counted.
"""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from innkeeper.domain.errors import TooManyAttempts
from innkeeper.store.queries.identity import login_failures
from innkeeper.store.transactions import Tx

ROWS_MAX = 10_000
"""The maximum number of counts. To evict one count, an attacker has to fail this many times under
other names. Each failure takes about 25 ms because of the password check. So the eviction takes
longer than the longest wait."""
FORGET_S = 900.0
"""The number of seconds without a failure after which a count expires.

If twice the longest wait is more than this number, the count expires after twice the longest
wait."""
DOUBLINGS_MAX = 30
PREFIX_BITS = 64
"""The number of bits of an IPv6 address that identify a source.

A client usually controls all addresses with the same prefix of this length."""
TOO_MANY = "Too many attempts to log in have failed. Please wait before the next one."


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """The number of failures before the first wait, and the longest wait in seconds."""

    free: int
    wait_max_s: float

    def wait_s(self, count: int) -> float:
        """Return the wait after ``count`` failures, in seconds.

        The wait is 0 for fewer than ``free`` failures. With each further failure, the wait is 1, 2,
        4 seconds and so on, up to ``wait_max_s``.
        """
        if count < self.free:
            return 0.0
        doubled: float = min(self.wait_max_s, 2.0 ** min(count - self.free, DOUBLINGS_MAX))
        return doubled

    @property
    def forgotten_after(self) -> timedelta:
        """The time without a failure after which a count expires."""
        return timedelta(seconds=max(FORGET_S, 2 * self.wait_max_s))


@dataclass(frozen=True, slots=True)
class Attempt:
    """The user that a client claims to be, and the source of the request. Both are hashes."""

    subject: str
    source: str


def attempt(name: str, address: str) -> Attempt:
    """Return an attempt from an address.

    ``name`` is the user's id if the user exists, or else the name that the client sent.
    """
    return Attempt(_hash("subject", name), _hash("source", _network(address)))


def check(tx: Tx, tried: Attempt, limits: AttemptLimits, now: datetime) -> int:
    """Return the number of earlier failures. Raises :class:`TooManyAttempts` during a wait."""
    found = login_failures.of(tx, tried.subject, tried.source)
    if found is None:
        return 0
    count, last_at = found
    # The wait must not become longer if the clock has been set back.
    passed = max(now - last_at, timedelta())
    if passed >= limits.forgotten_after:
        return 0
    left_s = limits.wait_s(count) - passed.total_seconds()
    if left_s > 0:
        raise TooManyAttempts(TOO_MANY, retry_after_s=ceil(left_s))
    return count


def fail(tx: Tx, tried: Attempt, limits: AttemptLimits, now: datetime) -> None:
    """Count a failed attempt. Delete expired counts."""
    login_failures.prune(tx, now - limits.forgotten_after)
    found = login_failures.of(tx, tried.subject, tried.source)
    count = 0 if found is None else found[0]
    if found is None:
        login_failures.drop_oldest(tx, login_failures.size(tx) - ROWS_MAX + 1)
    login_failures.write(tx, tried.subject, tried.source, count + 1, now)


def succeed(tx: Tx, tried: Attempt) -> None:
    """Delete the count of failures after a successful login."""
    login_failures.remove(tx, tried.subject, tried.source)


def forgive(tx: Tx, name: str) -> None:
    """Delete all counts of failures of a user, because the user's password has changed."""
    login_failures.remove(tx, _hash("subject", name))


def _hash(kind: str, text: str) -> str:
    return hashlib.sha256(f"{kind} {text}".encode("utf-8", "replace")).hexdigest()


def _network(address: str) -> str:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), PREFIX_BITS), strict=False))
