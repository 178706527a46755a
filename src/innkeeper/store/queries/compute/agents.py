"""Database access for agents and the times when they were last seen."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.compute import Agent
from innkeeper.domain.ids import AgentId
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.compute import agents
from innkeeper.store.transactions import Tx

_AGENTS = sa.select(*records.columns(agents, Agent))
_BY_ID = _AGENTS.where(agents.c.id == sa.bindparam("agent"))
_BY_NAME = _AGENTS.where(agents.c.name == sa.bindparam("requested"))
_AMONG = _AGENTS.where(agents.c.id.in_(IDS))
_SEEN_SINCE = Prepared(
    sa.select(agents.c.id, agents.c.last_seen_at).where(
        agents.c.last_seen_at >= sa.bindparam("since")
    )
)


def reset_future_heartbeats(tx: Tx, latest: datetime, now: datetime) -> int:
    """Change each ``last_seen_at`` after ``latest`` to ``now``.

    Returns the number of changed agents.
    """
    too_late = agents.update().where(agents.c.last_seen_at > latest)
    return tx.execute(too_late.values(last_seen_at=now)).rowcount


def last_seen(tx: Tx) -> list[tuple[AgentId, datetime]]:
    """Return every agent's id, and when the agent was last seen."""
    rows = tx.execute(sa.select(agents.c.id, agents.c.last_seen_at))
    return [(AgentId(agent_id), seen_at) for agent_id, seen_at in rows]


def seen_since(tx: Tx, moment: datetime) -> list[tuple[AgentId, datetime]]:
    """Return the id and time of each agent seen at or after ``moment``. Uses an index."""
    return _SEEN_SINCE.rows(tx, {"since": moment})


def by_id(tx: Tx, agent_id: AgentId) -> Agent | None:
    """Return the agent with this id."""
    return records.first(tx, _BY_ID, Agent, agent=agent_id)


def by_name(tx: Tx, name: str) -> Agent | None:
    """Return the agent with exactly this name."""
    # Some databases ignore case in comparisons, but names may differ in case alone.
    rows = [Agent(*row) for row in tx.execute(_BY_NAME, {"requested": name})]
    return next((each for each in rows if each.name == name), None)


def page(tx: Tx, after_name: str | None, limit: int) -> list[Agent]:
    """Return agents after ``after_name``, ordered by name."""
    query = _AGENTS.order_by(agents.c.name).limit(limit)
    if after_name is not None:
        query = query.where(agents.c.name > after_name)
    return [Agent(*row) for row in tx.execute(query)]


def add(tx: Tx, agent: Agent) -> None:
    """Insert an agent."""
    tx.execute(agents.insert(), records.values(agent))


def change_driver(tx: Tx, agent_id: AgentId, driver: str) -> None:
    """Update the driver of the agent's hosts."""
    tx.execute(agents.update().where(agents.c.id == agent_id).values(driver=driver))


def change_user(tx: Tx, agent_id: AgentId, user_id: str | None) -> None:
    """Update the user that may act as the agent."""
    tx.execute(agents.update().where(agents.c.id == agent_id).values(user_id=user_id))


def among(tx: Tx, agent_ids: Collection[AgentId]) -> dict[AgentId, Agent]:
    """Return the agents with these ids, by id."""
    return {each.id: each for each in (Agent(*row) for row in by_ids.rows(tx, _AMONG, agent_ids))}


def mark_seen(tx: Tx, agent_ids: Collection[AgentId], now: datetime) -> None:
    """Record that these agents sent a request now."""
    by_ids.run(tx, agents.update().where(agents.c.id.in_(IDS)).values(last_seen_at=now), agent_ids)
