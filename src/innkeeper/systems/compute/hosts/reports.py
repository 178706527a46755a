"""Apply the reports of many agents about their hosts together.

Always true: the effect of each report is the same as if it were applied alone. Agents repeat their
reports every few minutes, mostly unchanged. Only such repeated reports share statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.compute import Agent, Host
from innkeeper.domain.errors import Refusal
from innkeeper.domain.hosts import HostDefaults, HostReport, Reported
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import IdSource
from innkeeper.store.queries.compute import hosts as host_rows
from innkeeper.store.transactions import Tx, step
from innkeeper.systems.compute.hosts import agents, hosts

FIRST_LINES = 2
"""The weight of a host in the first report of an agent. A host in a repeated report has the weight
1. The first report has servers, and may have new hosts. Storing a new host takes five times as long
as comparing a known host."""


@dataclass(frozen=True, slots=True)
class AgentReport:
    """An agent's report about some of its hosts, from one request."""

    context: RequestContext
    agent_id: str
    hosts: Sequence[HostReport]
    defaults: HostDefaults
    ids: IdSource
    now: datetime


def line_count(reports: Sequence[HostReport]) -> int:
    """Estimate how many rows these reports change.

    The engine limits the total for each transaction.
    """
    return sum(1 if each.servers is None else FIRST_LINES for each in reports)


def apply_together(tx: Tx, reports: Sequence[AgentReport]) -> list[list[Reported] | Refusal]:
    """Apply reports, with the same effect as calls of :func:`hosts.report` in order.

    The answer to a report may be a refusal of :func:`hosts.report` or :func:`agents.own`.
    """
    owners = agents.own_together(tx, [(each.context, each.agent_id) for each in reports])
    answers = _repeated(tx, reports, owners) if len(reports) > 1 else {}
    for i, (each, owner) in enumerate(zip(reports, owners, strict=True)):
        if i not in answers:
            answers[i] = owner if isinstance(owner, Refusal) else _alone(tx, each, owner)
    return [answers[i] for i in range(len(reports))]


def _alone(tx: Tx, each: AgentReport, owner: Agent) -> list[Reported] | Refusal:
    try:
        with step(tx):
            return hosts.report(
                tx,
                owner,
                each.hosts,
                each.defaults,
                agent_identity=each.context.agent_identity,
                ids=each.ids,
                now=each.now,
            )
    except Refusal as refusal:
        return refusal


def _repeated(
    tx: Tx, reports: Sequence[AgentReport], owners: Sequence[Agent | Refusal]
) -> dict[int, list[Reported] | Refusal]:
    """Apply the reports that have only hosts that the agents reported before, and no servers.

    Return the answers by index of the report. If a report is refused, none is applied, and the
    result is empty. The caller must apply all reports that have no answer, one at a time.
    """
    known = host_rows.by_names(tx, {host.name for each in reports for host in each.hosts})
    chosen: list[int] = []
    merged: dict[str, HostReport] = {}
    for i, (each, owner) in enumerate(zip(reports, owners, strict=True)):
        names = {host.name for host in each.hosts}
        is_first = len(names) == len(each.hosts) and names.isdisjoint(merged)
        if isinstance(owner, Agent) and is_first and _is_repeated(each, owner, known):
            chosen.append(i)
            merged |= {host.name: host for host in each.hosts}
    if not chosen:
        return {}
    agent_of = {name: known[name].agent_id for name in merged}
    first = reports[chosen[0]]
    # All reports have the same defaults, because the defaults are settings of the service.
    now = max(reports[i].now for i in chosen)
    with suppress(Refusal), step(tx):
        only = {name: known[name] for name in merged}
        hosts.apply(
            tx, list(merged.values()), only, agent_of, first.defaults, ids=first.ids, now=now
        )
        return {i: [_shown(known[host.name]) for host in reports[i].hosts] for i in chosen}
    return {}


def _is_repeated(each: AgentReport, owner: Agent, known: Mapping[str, Host]) -> bool:
    identity = each.context.agent_identity
    return all(
        host.servers is None
        and host.name in known
        and known[host.name].agent_id == owner.id
        and (identity is None or identity.may_report(host.name))
        for host in each.hosts
    )


def _shown(host: Host) -> Reported:
    return Reported(host.name, host.provider_uuid, host.service_uuid, ())
