"""Booting: from requests to servers with claimed hosts, many requests in one transaction.

The place with the loop "plan, claim, else look again" for servers. Several requests are
planned one after the other on the same table, each seeing what the ones before it took; their
claims are committed together, and each stands or falls alone.

Always true: a server's row, its allocations, its quota and its build order are written in one
transaction. A request that finds no host leaves servers in ERROR that say why, and holds
nothing; one that brings an entry of a build plan is refused then, and leaves nothing. The same
becomes of a request for which a plug-in failed, and of no other in the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Booted, BootRequest, OrderKind, Power, Status, Task
from innkeeper.domain.errors import ConcurrentUpdate, PluginFailed, Refusal
from innkeeper.domain.ids import AgentId, ClassId, ConsumerUuid, ProviderId, ServerId
from innkeeper.domain.placement import Claim, ConsumerClaim
from innkeeper.domain.placing import BuildPlan, Entry
from innkeeper.scheduling import depletion, reasons
from innkeeper.scheduling.facts import masks
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries.compute import orders, quota_usages, servers
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import decisions, entries, plugins, request_resolver
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.decisions import NOTHING_KEPT, DecisionRecord
from innkeeper.systems.compute.boot.request_resolver import RequestResolver, ResolvedRequest
from innkeeper.systems.compute.grouping import dedications, groups
from innkeeper.systems.compute.servers import servers as server_rules
from innkeeper.systems.placement import claims

CONSUMER_TYPE = "INSTANCE"
"""What Placement's clients call a consumer that is a server; a word of that API."""


@dataclass(slots=True)
class Pending:
    """One request on its way through the loop."""

    resolved: ResolvedRequest
    plan: BuildPlan | None = None
    kept: DecisionRecord = NOTHING_KEPT
    failure: PluginFailed | None = None
    """Why the plan is empty, where a plug-in failed."""
    agents: tuple[AgentId, ...] = ()
    taken_in: tuple[str | None, ...] = ()
    """The pclouds that took servers in which named none."""
    outcome: Booted | Refusal | None = None

    @property
    def request(self) -> BootRequest:
        """The request itself."""
        return self.resolved.request


@dataclass(slots=True)
class BootRows:
    """What a batch of requests writes beside its claims."""

    servers: list[dict[str, Any]] = field(default_factory=list)
    orders: list[NewOrder] = field(default_factory=list)
    usages: dict[str, list[int]] = field(default_factory=dict)
    members: dict[int, list[ServerId]] = field(default_factory=dict)


def boot_together(
    tx: Tx, context: DecisionContext, requests: Sequence[BootRequest]
) -> list[Booted | Refusal]:
    """Plan, claim and write all requests; give each one's outcome, in order."""
    resolver = RequestResolver(tx, context, requests)
    received = [_receive(context, resolver, request) for request in requests]
    pendings = [each for each in received if isinstance(each, Pending)]
    open_ones = _claim_all(tx, context, pendings)
    for _ in range(context.scheduling.claim_attempts_max - 1):
        if not open_ones:
            break
        context.follower.catch_up(tx)
        context.follower.reread(tx, {pid for each in open_ones for pid in _plan_of(each).seen})
        for each in open_ones:
            resolver.join(each.resolved, ())
        for each in open_ones:
            each.resolved = resolver.look_again(each.resolved)
            _plan(context, each)
            resolver.join(each.resolved, _homes(each))
        open_ones = _claim_all(tx, context, open_ones)
    for each in open_ones:
        each.outcome = ConcurrentUpdate("The chosen hosts kept changing; trying again may help.")
    _write_rows(tx, pendings)
    return [each if isinstance(each, Refusal) else _outcome(each) for each in received]


def _outcome(pending: Pending) -> Booted | Refusal:
    assert pending.outcome is not None, "every request that was taken in has an outcome"
    return pending.outcome


def _receive(
    context: DecisionContext, resolver: RequestResolver, request: BootRequest
) -> Pending | Refusal:
    """Take a request in and plan it, ahead of the next one of the batch."""
    try:
        pending = Pending(resolver.take(request))
    except Refusal as refusal:
        return refusal
    _plan(context, pending)
    homes = _homes(pending)
    resolver.count_in(pending.resolved, len(homes))
    resolver.join(pending.resolved, homes)
    return pending


def _homes(pending: Pending) -> list[str | None]:
    """The hosts of the servers that a request will have; None for those that found none."""
    if _is_placed(pending):
        return [entry.host for entry in _plan_of(pending).entries]
    if pending.request.destination is not None:
        return []
    return [None] * pending.request.count_min


def _plan(context: DecisionContext, pending: Pending) -> None:
    pending.failure = None
    try:
        _plan_or_fail(context, pending)
    except PluginFailed as failure:
        plugins.log(failure)
        pending.failure = failure
        pending.plan = BuildPlan((), {}, context.follower.table.host_count, 0, ())
        pending.kept = decisions.of_failed(context, pending.resolved, pending.plan)


def _plan_or_fail(context: DecisionContext, pending: Pending) -> None:
    """Plan a request, and take what was planned off the table; with an error, nothing."""
    table = context.follower.table
    spec = pending.resolved.spec
    scheduler = context.schedulers.of(pending.resolved.filters)
    moment = context.recorder.before(table)
    made = context.decide(scheduler, spec)
    context.follower.touch(made.seen)
    pending.plan = made
    if not _is_placed(pending):
        # Fewer than the least that is of use: none at all.
        depletion.undo(table, spec, made)
        pending.kept = decisions.of_refused(context, pending.resolved, made, moment)
        return
    with ExitStack() as undoing:
        undoing.callback(depletion.undo, table, spec, made)
        pending.kept = decisions.of_placed(context, pending.resolved, made, moment)
        undoing.pop_all()
    # Ahead of the commit, so that the next request of this batch plans behind this one.
    table.expect_claim(made.seen)


def _claim_all(tx: Tx, context: DecisionContext, pendings: Sequence[Pending]) -> list[Pending]:
    """Claim what was planned; give the requests whose hosts had moved on."""
    placed = [each for each in pendings if _is_placed(each)]
    for each in pendings:
        if not _is_placed(each):
            each.outcome = _nowhere(each, masks.has_dedicated(context.follower.table))
    if not placed:
        return []
    now = placed[0].request.now
    class_ids = context.follower.table.class_ids
    ready = [_claim(each, class_ids) for each in placed]
    refusals = claims.commit_together(tx, ready, now)
    beaten: list[Pending] = []
    for each, refusal in zip(placed, refusals, strict=True):
        if refusal is None:
            count = len(_plan_of(each).entries)
            each.outcome = Booted(each.request.batch_id, each.request.server_ids[:count])
            # Now: looking again for those who were beaten can give hosts other rows.
            table = context.follower.table
            each.agents = tuple(table.agent_of(entry.index) for entry in _plan_of(each).entries)
            each.taken_in = _taken_in(table, each)
        else:
            beaten.append(each)
    # From the last to the first: a generation goes back to what the earlier plan had seen.
    for each in reversed(beaten):
        _take_back(context.follower.table, each)
    return beaten


def _taken_in(table: HostTable, pending: Pending) -> tuple[str | None, ...]:
    if not pending.resolved.spec.automatic_pclouds:
        return ()
    return tuple(
        table.dedications.uuid(int(table.dedication_codes[entry.index]))
        for entry in _plan_of(pending).entries
    )


def _take_back(table: HostTable, pending: Pending) -> None:
    made = _plan_of(pending)
    depletion.undo(table, pending.resolved.spec, made)
    table.expect_no_claim(made.seen)


def _is_placed(pending: Pending) -> bool:
    return len(_plan_of(pending).entries) >= pending.request.count_min


def _plan_of(pending: Pending) -> BuildPlan:
    assert pending.plan is not None, "planned before it is claimed"
    return pending.plan


def _nowhere(pending: Pending, has_dedicated: bool) -> Booted | Refusal:
    if pending.failure is not None:
        return _failed(pending.request, pending.failure)
    request, made, refused = pending.request, _plan_of(pending), pending.kept.refused
    sentence = reasons.sentence(
        made, request.count_min, refused.nearest, has_dedicated=has_dedicated
    )
    if request.destination is not None:
        # Who holds a plan tries its next entry, and must not have to clear up behind this one.
        return entries.Stale(sentence)
    return Booted(
        request.batch_id,
        request.server_ids[: request.count_min],
        sentence,
        refused=refused,
        refused_by=reasons.culprit(made, refused),
        counted_fault=reasons.counted(made, request.count_min, refused.nearest),
    )


def _failed(request: BootRequest, failure: PluginFailed) -> Booted | Refusal:
    if request.destination is not None:
        return failure
    return Booted(
        request.batch_id,
        request.server_ids[: request.count_min],
        reasons.NO_VALID_HOST + failure.message,
        refused_by=failure.plugin,
        details=f"{failure.plugin}: {failure.why}",
    )


def _claim(pending: Pending, class_ids: Mapping[str, ClassId]) -> Claim:
    request, spec = pending.request, pending.resolved.spec
    whole = {class_ids[name]: amount for name, amount in spec.amounts.items()}
    made = _plan_of(pending)
    consumers = tuple(
        ConsumerClaim(
            uuid=ConsumerUuid(server_id),
            project_id=request.project_id,
            user_id=request.user_id,
            amounts=_split(entry, whole, class_ids) if entry.loans else {entry.provider_id: whole},
            seen=None,
            consumer_type=CONSUMER_TYPE,
            is_new_id=request.destination is None,
        )
        for server_id, entry in zip(request.server_ids, made.entries, strict=False)
    )
    return Claim(consumers, dict(made.seen))


def _split(
    entry: Entry, whole: Mapping[ClassId, int], class_ids: Mapping[str, ClassId]
) -> dict[ProviderId, dict[ClassId, int]]:
    """What a server holds of its host, and of the pools that lend to it."""
    parts = {entry.provider_id: dict(whole)}
    for each in entry.loans:
        class_id = class_ids[each.class_name]
        parts.setdefault(each.provider_id, {})[class_id] = parts[entry.provider_id].pop(class_id)
    return parts


def _write_rows(tx: Tx, pendings: Sequence[Pending]) -> None:
    rows = BootRows()
    for each in pendings:
        if isinstance(each.outcome, Booted):
            _add_rows(rows, each, each.outcome)
    servers.insert_many(tx, rows.servers)
    now: datetime | None = pendings[0].request.now if pendings else None
    if now is not None:
        orders.add(tx, rows.orders, now)
    for group_id, server_ids in rows.members.items():
        groups.add_members(tx, group_id, server_ids)
    for project_id, (count, vcpus, memory_mb) in rows.usages.items():
        quota_usages.add_usage(tx, project_id, count, vcpus, memory_mb)


def _fault(booted: Booted, now: datetime) -> dict[str, Any] | None:
    if booted.fault is None:
        return None
    details = booted.details
    if booted.refused is not None:
        details = reasons.details(booted.refused)
    return server_rules.fault(booted.fault, now, details, booted.counted_fault)


def _add_rows(rows: BootRows, pending: Pending, booted: Booted) -> None:
    request, flavor = pending.request, pending.resolved.flavor
    shared = request_resolver.shared_columns(pending.resolved)
    placed = _plan_of(pending).entries if booted.fault is None else ()
    fault = _fault(booted, request.now)
    for index, server_id in enumerate(booted.server_ids):
        entry = placed[index] if placed else None
        name = request_resolver.name_of(request, index)
        rows.servers.append(
            {
                **shared,
                "uuid": server_id,
                "name": name,
                "hostname": request_resolver.hostname_of(request, index, server_id),
                "launch_index": index,
                "status": Status.ERROR if entry is None else Status.BUILD,
                "task_state": None if entry is None else Task.SPAWNING,
                "power_state": Power.NO_STATE,
                "host": None if entry is None else entry.host,
                "provider_id": None if entry is None else entry.provider_id,
                "fault": fault,
                "decision": pending.kept.of_server(index),
            }
        )
        pcloud = pending.taken_in[index] if entry is not None and pending.taken_in else None
        if pcloud is not None:
            # It has come to a pcloud without naming it, and stays there when it moves.
            rows.servers[-1]["hints"] = dedications.taken_in(request.hints, pcloud)
        if entry is not None:
            rows.orders.append(
                NewOrder(
                    agent_id=pending.agents[index],
                    host=entry.host,
                    server_uuid=server_id,
                    kind=OrderKind.BUILD,
                    body=request_resolver.order_body(pending.resolved, name),
                    alternates=entry.alternates,
                    request_id=request.request_id,
                )
            )
    if pending.resolved.group_id is not None:
        rows.members.setdefault(pending.resolved.group_id, []).extend(booted.server_ids)
    count = len(booted.server_ids)
    usage = rows.usages.setdefault(request.project_id, [0, 0, 0])
    usage[0] += count
    usage[1] += count * flavor.vcpus
    usage[2] += count * flavor.memory_mb
