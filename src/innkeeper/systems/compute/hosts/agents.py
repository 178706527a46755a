"""Register agents, record their heartbeats, and check which callers may act for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from innkeeper.domain.compute import Agent
from innkeeper.domain.errors import AlreadyExists, Forbidden, NotFound, Refusal
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import AgentId
from innkeeper.store.queries.compute import agents
from innkeeper.store.transactions import Tx

# Queries that are re-exported unchanged.
page = agents.page


def register(
    tx: Tx, context: RequestContext, name: str, driver: str, *, new_id: str, now: datetime
) -> Agent:
    """Register an agent, and return it.

    If an agent with this name is already registered, the registered agent is returned. A
    registration does not count as a heartbeat, because the agent's machines may not respond yet. If
    the caller uses the agent's own credential, the credential's user becomes the owner of the
    agent. Raises :class:`AlreadyExists` if another user's agent has the name. Raises
    :class:`Forbidden` for the credential of another agent.
    """
    agent_identity = context.agent_identity
    if agent_identity is not None and agent_identity.agent_name != name:
        raise Forbidden("The credential was issued for an agent with another name.")
    known = agents.by_name(tx, name)
    if known is None:
        agent = Agent(AgentId(new_id), name, driver, context.user_id, now, now)
        agents.add(tx, agent)
        return agent
    if agent_identity is not None and known.user_id != context.user_id:
        agents.change_user(tx, known.id, context.user_id)
        known = replace(known, user_id=context.user_id)
    if not _is_own(known, context):
        raise AlreadyExists(f"Agent name {name!r} is already in use by another user.")
    if known.driver != driver:
        agents.change_driver(tx, known.id, driver)
    return replace(known, driver=driver)


def own(tx: Tx, context: RequestContext, agent_id: str) -> Agent:
    """Return the agent with this id.

    Raises :class:`NotFound` if the caller may not act for the agent.
    """
    (found,) = own_together(tx, [(context, agent_id)])
    if isinstance(found, Refusal):
        raise found
    return found


@dataclass(frozen=True, slots=True)
class AgentHeartbeat:
    """A heartbeat of an agent. The agent's hosts then count as up."""

    context: RequestContext
    agent_id: str
    now: datetime


def heartbeats(tx: Tx, beats: Sequence[AgentHeartbeat]) -> list[Refusal | None]:
    """Record heartbeats together, all with the time of the latest heartbeat.

    The answer to a heartbeat is ``None``, or the :class:`NotFound` that :func:`own` would raise.
    """
    found = own_together(tx, [(each.context, each.agent_id) for each in beats])
    seen = {each.id for each in found if isinstance(each, Agent)}
    if seen:
        # The ids are sorted, so that processes that record heartbeats together do not block each
        # other.
        agents.mark_seen(tx, sorted(seen), max(each.now for each in beats))
    return [None if isinstance(each, Agent) else each for each in found]


def own_together(tx: Tx, callers: Sequence[tuple[RequestContext, str]]) -> list[Agent | Refusal]:
    """Return the agent, or the refusal of :func:`own`, for each pair of (caller, agent id)."""
    known = agents.among(tx, sorted({AgentId(agent_id) for _, agent_id in callers}))
    return [_own_or_refusal(known, *each) for each in callers]


def _own_or_refusal(
    known: Mapping[AgentId, Agent], context: RequestContext, agent_id: str
) -> Agent | Refusal:
    found = known.get(AgentId(agent_id))
    if found is None or not _is_own(found, context):
        return NotFound(f"Agent {agent_id} could not be found.")
    return found


def _is_own(agent: Agent, context: RequestContext) -> bool:
    return context.is_admin or agent.user_id == context.user_id
