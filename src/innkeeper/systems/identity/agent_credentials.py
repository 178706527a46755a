"""Credentials of agents: each is one agent's by name, and opens nothing but what that agent
does for its own hosts.

A credential is a text with a random secret of 256 bits in it. Of the secret the store has a
plain SHA-256: nobody can guess what is that long, so there is nothing for a slow hash to slow
down, and agents call every few seconds.

Always true: a credential that is not known, was taken back or has ended is refused with the
same words; the text itself is given out once and never again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from innkeeper.domain.errors import Conflict, NotFound, Unauthenticated
from innkeeper.domain.identity import AgentCredential
from innkeeper.domain.ids import IdSource
from innkeeper.store.queries.identity import agent_credentials
from innkeeper.store.transactions import Tx

SECRET_BYTES = 32
SEED_BITS = 63
SEEDS = 5
"""Draws that have more random bits together than a secret takes."""
assert SEED_BITS * SEEDS >= 8 * SECRET_BYTES
PER_AGENT_MAX = 8
"""Credentials of one agent at a time: the present one, the next, and some left by mistake."""
_TEXT = re.compile(r"agent\.([0-9a-f]{32})\.([A-Za-z0-9_-]{43})")
"""No token of any kind has dots in it where this has them."""
REFUSED = "The agent's credential is not valid."


def is_one(text: str) -> bool:
    """Whether a text is in the form of a credential; whether it opens anything is not said."""
    return _TEXT.fullmatch(text) is not None


def issue(
    tx: Tx,
    agent_name: str,
    *,
    hosts: Sequence[str] = (),
    lifetime_s: float | None = None,
    is_replacing: bool = False,
    ids: IdSource,
    now: datetime,
) -> tuple[AgentCredential, str]:
    """Make a credential; gives it, and the text that the agent is to be handed.

    Replacing takes back all others of that agent. Raises :class:`Conflict` where it has too
    many already.
    """
    secret = _new_secret(ids)
    agent_credentials.prune(tx, now)
    others = agent_credentials.of_agent(tx, agent_name)
    if is_replacing:
        for each in others:
            agent_credentials.remove(tx, each.id)
    elif len(others) >= PER_AGENT_MAX:
        raise Conflict(
            f"The agent {agent_name!r} has {len(others)} credentials. Take back those that are "
            "not used any more."
        )
    made = AgentCredential(
        id=ids.uuid().replace("-", ""),
        agent_name=agent_name,
        secret_hash=_hash(secret),
        hosts=tuple(hosts),
        created_at=now,
        expires_at=None if lifetime_s is None else now + timedelta(seconds=lifetime_s),
    )
    agent_credentials.add(tx, made)
    text = f"agent.{made.id}.{secret}"
    assert is_one(text), "ids and secrets of another form could never be used"
    return made, text


def holder(tx: Tx, text: str, now: datetime) -> AgentCredential:
    """The credential that a text is; raises :class:`Unauthenticated` if it is void."""
    match = _TEXT.fullmatch(text)
    found = None if match is None else agent_credentials.by_id(tx, match[1])
    if match is None or found is None:
        raise Unauthenticated(REFUSED)
    is_right = hmac.compare_digest(found.secret_hash, _hash(match[2]))
    if not is_right or (found.expires_at is not None and found.expires_at <= now):
        raise Unauthenticated(REFUSED)
    return found


def get(tx: Tx, credential_id: str) -> AgentCredential:
    """Give a credential, or raise :class:`NotFound`."""
    is_id = re.fullmatch(r"[0-9a-f]{32}", credential_id) is not None
    found = agent_credentials.by_id(tx, credential_id) if is_id else None
    if found is None:
        raise NotFound("The agent credential could not be found.")
    return found


def page(tx: Tx, after_id: str | None, limit: int) -> list[AgentCredential]:
    """Credentials in a stable order, behind ``after_id``."""
    return agent_credentials.page(tx, after_id, limit)


def of_agent(tx: Tx, agent_name: str) -> list[AgentCredential]:
    """Those of one agent, the oldest first."""
    return agent_credentials.of_agent(tx, agent_name)


def revoke(tx: Tx, credential_id: str) -> None:
    """Take a credential back; raises :class:`NotFound` where there is none."""
    agent_credentials.remove(tx, get(tx, credential_id).id)


def revoke_all(tx: Tx, agent_name: str) -> int:
    """Take back all that an agent has; gives their number."""
    gone = agent_credentials.of_agent(tx, agent_name)
    for each in gone:
        agent_credentials.remove(tx, each.id)
    return len(gone)


def _new_secret(ids: IdSource) -> str:
    number = 0
    for _ in range(SEEDS):
        number = number << SEED_BITS | ids.seed()
    raw = (number % 2 ** (8 * SECRET_BYTES)).to_bytes(SECRET_BYTES, "big")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
