"""Database access for agents' credentials."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.identity import AgentCredential
from innkeeper.store import invalidations, pruning, records
from innkeeper.store.tables.identity import agent_credentials
from innkeeper.store.transactions import Tx

_CREDENTIALS = sa.select(*records.columns(agent_credentials, AgentCredential))


def _credential(row: Sequence[Any]) -> AgentCredential:
    credential_id, agent_name, secret_hash, hosts, *moments = row
    return AgentCredential(credential_id, agent_name, secret_hash, tuple(hosts), *moments)


def add(tx: Tx, credential: AgentCredential) -> None:
    """Insert a credential."""
    values = {**records.values(credential), "hosts": list(credential.hosts)}
    tx.execute(agent_credentials.insert(), values)


def by_id(tx: Tx, credential_id: str) -> AgentCredential | None:
    """Return the credential with this id."""
    row = tx.execute(_CREDENTIALS.where(agent_credentials.c.id == credential_id)).first()
    return None if row is None else _credential(row)


def of_agent(tx: Tx, agent_name: str) -> list[AgentCredential]:
    """Return the credentials of the agent with exactly this name, oldest first."""
    query = _CREDENTIALS.where(agent_credentials.c.agent_name == agent_name).order_by(
        agent_credentials.c.created_at, agent_credentials.c.id
    )
    # Some databases ignore case in comparisons, but agents' names may differ in case alone.
    found = [_credential(row) for row in tx.execute(query)]
    return [each for each in found if each.agent_name == agent_name]


def page(tx: Tx, after_id: str | None, limit: int) -> list[AgentCredential]:
    """Return credentials after ``after_id``, ordered by id."""
    query = _CREDENTIALS.order_by(agent_credentials.c.id).limit(limit)
    if after_id is not None:
        query = query.where(agent_credentials.c.id > after_id)
    return [_credential(row) for row in tx.execute(query)]


def remove(tx: Tx, credential_id: str) -> bool:
    """Delete a credential; return whether it existed."""
    # Other processes may have cached the credential.
    invalidations.invalidate(tx, invalidations.IDENTITY)
    result = tx.execute(agent_credentials.delete().where(agent_credentials.c.id == credential_id))
    return result.rowcount > 0


def prune(tx: Tx, now: datetime) -> int:
    """Delete expired credentials, up to a maximum per call; return the number of deleted rows."""
    return pruning.delete_some(tx, agent_credentials, agent_credentials.c.expires_at <= now)
