"""Agents: who may speak for which, and that they were heard."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from innkeeper.domain.compute import Agent
from innkeeper.domain.errors import AlreadyExists, Forbidden, NotFound
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import AgentId
from innkeeper.store.queries.compute import agents
from innkeeper.store.transactions import Tx


def register(
    tx: Tx, context: RequestContext, name: str, driver: str, *, new_id: str, now: datetime
) -> Agent:
    """Make an agent known, or know it again by its name: a restarted one is the same.

    One that is known is not heard by that: it may yet find that its machines do not answer.
    Who calls with the agent's own credential takes it over from the user who registered it
    before. Raises :class:`AlreadyExists` if another user's agent has the name, and
    :class:`Forbidden` for a credential that is another agent's.
    """
    speaker = context.speaker
    if speaker is not None and speaker.agent_name != name:
        raise Forbidden("The credential belongs to an agent of another name.")
    known = agents.by_name(tx, name)
    if known is None:
        made = Agent(AgentId(new_id), name, driver, context.user_id, now, now)
        agents.add(tx, made)
        return made
    if speaker is not None and known.user_id != context.user_id:
        agents.change_user(tx, known.id, context.user_id)
        known = replace(known, user_id=context.user_id)
    if not _is_own(known, context):
        raise AlreadyExists(f"There is an agent {name!r} already, and it is not yours.")
    if known.driver != driver:
        agents.change_driver(tx, known.id, driver)
    return replace(known, driver=driver)


def own(tx: Tx, context: RequestContext, agent_id: str) -> Agent:
    """The agent with this id, if the caller may speak for it; else :class:`NotFound`."""
    found = agents.by_id(tx, AgentId(agent_id))
    if found is None or not _is_own(found, context):
        raise NotFound(f"Agent {agent_id} could not be found.")
    return found


def hear(tx: Tx, context: RequestContext, agent_id: str, now: datetime) -> Agent:
    """Write down that an agent spoke; its hosts are up from now on, if they were down."""
    found = own(tx, context, agent_id)
    agents.mark_seen(tx, found.id, now)
    return found


def page(tx: Tx, after_name: str | None, limit: int) -> list[Agent]:
    """Agents by name, behind ``after_name``."""
    return agents.page(tx, after_name, limit)


def _is_own(agent: Agent, context: RequestContext) -> bool:
    return context.is_admin or agent.user_id == context.user_id
