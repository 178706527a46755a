"""Credentials of agents, and whose they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.identity import AgentCredential
from innkeeper.store import invalidations
from innkeeper.store.tables.identity import agent_credentials
from innkeeper.store.transactions import Tx

_COLUMNS = (
    agent_credentials.c.id,
    agent_credentials.c.agent_name,
    agent_credentials.c.secret_hash,
    agent_credentials.c.hosts,
    agent_credentials.c.created_at,
    agent_credentials.c.expires_at,
)


def _credential(row: Sequence[Any]) -> AgentCredential:
    credential_id, agent_name, secret_hash, hosts, created_at, expires_at = row
    return AgentCredential(
        credential_id, agent_name, secret_hash, tuple(hosts), created_at, expires_at
    )


def add(tx: Tx, credential: AgentCredential) -> None:
    """Write a new one."""
    values = {column.name: getattr(credential, column.name) for column in _COLUMNS}
    tx.execute(agent_credentials.insert(), {**values, "hosts": list(credential.hosts)})


def by_id(tx: Tx, credential_id: str) -> AgentCredential | None:
    """One credential."""
    query = sa.select(*_COLUMNS).where(agent_credentials.c.id == credential_id)
    row = tx.execute(query).first()
    return None if row is None else _credential(row)


def of_agent(tx: Tx, agent_name: str) -> list[AgentCredential]:
    """Those of the agent with this name, spelt exactly so, the oldest first."""
    query = (
        sa.select(*_COLUMNS)
        .where(agent_credentials.c.agent_name == agent_name)
        .order_by(agent_credentials.c.created_at, agent_credentials.c.id)
    )
    # Some databases compare names without regard to case; two agents may differ in just that.
    found = [_credential(row) for row in tx.execute(query)]
    return [each for each in found if each.agent_name == agent_name]


def page(tx: Tx, after_id: str | None, limit: int) -> list[AgentCredential]:
    """Credentials in the order of their ids, behind ``after_id``."""
    query = sa.select(*_COLUMNS).order_by(agent_credentials.c.id).limit(limit)
    if after_id is not None:
        query = query.where(agent_credentials.c.id > after_id)
    return [_credential(row) for row in tx.execute(query)]


def remove(tx: Tx, credential_id: str) -> bool:
    """Drop one; tell whether it was there."""
    # Others of several processes may remember it.
    invalidations.tell(tx, invalidations.IDENTITY)
    result = tx.execute(agent_credentials.delete().where(agent_credentials.c.id == credential_id))
    return result.rowcount > 0


def prune(tx: Tx, now: datetime) -> None:
    """Drop those that have ended."""
    tx.execute(agent_credentials.delete().where(agent_credentials.c.expires_at <= now))
