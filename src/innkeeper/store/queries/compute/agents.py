"""Agents: who they are, and when each was heard last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Agent
from innkeeper.domain.ids import AgentId
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.compute import agents
from innkeeper.store.transactions import Tx

_AGENTS = sa.select(
    agents.c.id,
    agents.c.name,
    agents.c.driver,
    agents.c.user_id,
    agents.c.last_seen_at,
    agents.c.created_at,
)
_BY_ID = _AGENTS.where(agents.c.id == sa.bindparam("agent"))
_BY_NAME = _AGENTS.where(agents.c.name == sa.bindparam("wanted"))
_HEARD = (
    agents.update()
    .where(agents.c.id == sa.bindparam("agent"))
    .values(last_seen_at=sa.bindparam("now"))
)
_PULL_BACK = (
    agents.update()
    .where(agents.c.last_seen_at > sa.bindparam("latest"))
    .values(last_seen_at=sa.bindparam("now"))
)


def pull_back(tx: Tx, latest: datetime, now: datetime) -> int:
    """Have agents be heard ``now`` that were heard after ``latest``; give their number."""
    return tx.execute(_PULL_BACK, {"latest": latest, "now": now}).rowcount


def _agent(row: Sequence[Any]) -> Agent:
    agent_id, name, driver, user_id, last_seen_at, created_at = row
    return Agent(AgentId(agent_id), name, driver, user_id, last_seen_at, created_at)


def last_seen(tx: Tx) -> list[tuple[AgentId, datetime]]:
    """Every agent, and when it was heard last. One row per agent, not per host."""
    rows = tx.execute(sa.select(agents.c.id, agents.c.last_seen_at))
    return [(AgentId(agent_id), seen_at) for agent_id, seen_at in rows]


_SEEN_SINCE = Prepared(
    sa.select(agents.c.id, agents.c.last_seen_at).where(
        agents.c.last_seen_at >= sa.bindparam("since")
    )
)


def seen_since(tx: Tx, moment: datetime) -> list[tuple[AgentId, datetime]]:
    """As :func:`last_seen`, only those heard at or after a moment; read from an index."""
    return _SEEN_SINCE.rows(tx, {"since": moment})


def by_id(tx: Tx, agent_id: AgentId) -> Agent | None:
    """One agent."""
    row = tx.execute(_BY_ID, {"agent": agent_id}).first()
    return None if row is None else _agent(row)


def by_name(tx: Tx, name: str) -> Agent | None:
    """The agent with this name, spelt exactly so."""
    # Some databases compare names without regard to case; two agents may differ in just that.
    rows = [_agent(row) for row in tx.execute(_BY_NAME, {"wanted": name})]
    return next((each for each in rows if each.name == name), None)


def page(tx: Tx, after_name: str | None, limit: int) -> list[Agent]:
    """Agents in the order of their names, behind ``after_name``."""
    query = _AGENTS.order_by(agents.c.name).limit(limit)
    if after_name is not None:
        query = query.where(agents.c.name > after_name)
    return [_agent(row) for row in tx.execute(query)]


def add(tx: Tx, agent: Agent) -> None:
    """Write a new agent."""
    tx.execute(
        agents.insert(),
        {
            "id": agent.id,
            "name": agent.name,
            "driver": agent.driver,
            "user_id": agent.user_id,
            "last_seen_at": agent.last_seen_at,
            "created_at": agent.created_at,
        },
    )


def change_driver(tx: Tx, agent_id: AgentId, driver: str) -> None:
    """Tell what drives the agent's hosts now."""
    tx.execute(agents.update().where(agents.c.id == agent_id).values(driver=driver))


def change_user(tx: Tx, agent_id: AgentId, user_id: str | None) -> None:
    """Tell who may speak for the agent from now on."""
    tx.execute(agents.update().where(agents.c.id == agent_id).values(user_id=user_id))


def heard(tx: Tx, agent_id: AgentId, now: datetime) -> bool:
    """Write down that an agent spoke; False if there is no such agent."""
    return tx.execute(_HEARD, {"agent": agent_id, "now": now}).rowcount == 1
