"""Issue, check and revoke the credentials of agents.

A credential belongs to one agent. It permits only the calls that an agent makes for its own hosts.
The credential contains a random secret of 256 bits. The database has a plain SHA-256 hash of the
secret. A slow hash is not needed, because a random secret cannot be guessed. A slow hash would
delay the agents, which call every few seconds.

Always true: unknown, revoked and expired credentials are refused with the same message. The secret
is shown only once, when the credential is issued.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from innkeeper.domain import key_rings
from innkeeper.domain.errors import Conflict, NotFound, Unauthenticated
from innkeeper.domain.identity import AgentCredential
from innkeeper.domain.ids import IdSource, secret_bytes
from innkeeper.store.queries.identity import agent_credentials
from innkeeper.store.transactions import Tx

PER_AGENT_MAX = 8
"""The maximum number of credentials of an agent: a current one, its successor, and old ones."""
_TEXT = re.compile(r"agent\.([0-9a-f]{32})\.([A-Za-z0-9_-]{43})")
"""The form of a credential. No token has this form."""
REFUSED = "The agent's credential is not valid."


def is_one(text: str) -> bool:
    """Return True if a text has the form of a credential. The credential may be invalid."""
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
    """Create a credential for an agent.

    Return the credential, and the text that the agent sends to authenticate. With ``is_replacing``,
    the agent's other credentials are revoked. Otherwise raises :class:`Conflict` if the agent has
    :data:`PER_AGENT_MAX` valid credentials.
    """
    secret = key_rings.unpadded_text_of(secret_bytes(ids))
    agent_credentials.prune(tx, now)
    known = agent_credentials.of_agent(tx, agent_name)
    others = [each for each in known if each.expires_at is None or each.expires_at > now]
    if is_replacing:
        for each in known:
            agent_credentials.remove(tx, each.id)
    elif len(others) >= PER_AGENT_MAX:
        raise Conflict(
            f"The agent {agent_name!r} has {len(others)} credentials. Revoke the "
            "credentials that are no longer used."
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
    assert is_one(text), "the text has the form of a credential"
    return made, text


def holder(tx: Tx, text: str, now: datetime) -> AgentCredential:
    """Return the credential with this text. Raises :class:`Unauthenticated` for an invalid text."""
    match = _TEXT.fullmatch(text)
    found = None if match is None else agent_credentials.by_id(tx, match[1])
    if match is None or found is None:
        raise Unauthenticated(REFUSED)
    is_right = hmac.compare_digest(found.secret_hash, _hash(match[2]))
    if not is_right or (found.expires_at is not None and found.expires_at <= now):
        raise Unauthenticated(REFUSED)
    return found


def get(tx: Tx, credential_id: str) -> AgentCredential:
    """Return the credential with this id. Raises :class:`NotFound`."""
    is_id = re.fullmatch(r"[0-9a-f]{32}", credential_id) is not None
    found = agent_credentials.by_id(tx, credential_id) if is_id else None
    if found is None:
        raise NotFound("The agent credential could not be found.")
    return found


def page(tx: Tx, after_id: str | None, limit: int) -> list[AgentCredential]:
    """Return a page of credentials in a stable order, after ``after_id``."""
    return agent_credentials.page(tx, after_id, limit)


def of_agent(tx: Tx, agent_name: str) -> list[AgentCredential]:
    """Return the credentials of one agent, oldest first."""
    return agent_credentials.of_agent(tx, agent_name)


def revoke(tx: Tx, credential_id: str) -> None:
    """Revoke a credential. Raises :class:`NotFound`."""
    agent_credentials.remove(tx, get(tx, credential_id).id)


def revoke_all(tx: Tx, agent_name: str) -> int:
    """Revoke all credentials of an agent. Return the number of credentials."""
    revoked = agent_credentials.of_agent(tx, agent_name)
    for each in revoked:
        agent_credentials.remove(tx, each.id)
    return len(revoked)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
