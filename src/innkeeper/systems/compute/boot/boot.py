"""Boots servers: plans, claims and writes several boot requests in one transaction.

The requests of one transaction are called a batch. This module has the retry loop for a batch:
plan, claim, and plan again after a conflict. Requests are planned one after the other on the same
host table, so each plan sees the amounts that earlier plans have taken. The claims are committed
together. A refused claim does not affect the other claims.

Always true: a server's row, its allocations, its quota usage and its build order are written in one
transaction. If no host is valid for a request, its servers are created in ERROR, with a fault and
without allocations. But a request with a build plan entry is then refused, and nothing is written.
If a plug-in fails while a request is planned, no host counts as valid for this request. Other
requests are not affected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import ConcurrentUpdate, PluginFailed, Refusal
from innkeeper.domain.ids import AgentId, ClassId, ConsumerUuid, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim
from innkeeper.domain.placing import BuildPlan, Entry
from innkeeper.scheduling import depletion, reasons
from innkeeper.scheduling.facts import masks
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import decisions, plugins, server_rows
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.decisions import NOTHING_KEPT, DecisionRecord
from innkeeper.systems.compute.boot.entries import EntryStale
from innkeeper.systems.compute.boot.plans_ahead import PlansAhead
from innkeeper.systems.compute.boot.request_resolver import Homes, RequestResolver
from innkeeper.systems.compute.boot.resolved_requests import ResolvedRequest
from innkeeper.systems.compute.boot.server_rows import NewServers
from innkeeper.systems.placement import claims

CONSUMER_TYPE = "INSTANCE"
"""The consumer type of servers in the Placement API."""


@dataclass(slots=True)
class PendingBoot:
    """A boot request that is being planned and claimed."""

    resolved: ResolvedRequest
    plan: BuildPlan
    record: DecisionRecord = NOTHING_KEPT
    failure: PluginFailed | None = None
    """The failure of the plug-in that made the plan empty, or ``None``."""
    agents: tuple[AgentId, ...] = ()
    automatic_pclouds: tuple[str | None, ...] = ()
    outcome: Booted | Refusal | None = None

    @property
    def request(self) -> BootRequest:
        """The boot request."""
        return self.resolved.request

    @property
    def is_placed(self) -> bool:
        """Whether the plan has hosts for at least ``count_min`` servers."""
        return len(self.plan.entries) >= self.request.count_min

    @property
    def homes(self) -> Homes:
        """The host of each server to create, or ``None`` for a server in ERROR."""
        if self.is_placed:
            return [entry.host for entry in self.plan.entries]
        if self.request.destination is not None or self.request.is_refused_without_hosts:
            return []
        return [None] * self.request.count_min


def boot_together(
    tx: Tx, context: DecisionContext, requests: Sequence[BootRequest], ahead: PlansAhead
) -> list[Booted | Refusal]:
    """Plan, claim and write all requests, and return their outcomes in the same order.

    ``ahead`` has plans that were made before this call. Its plans for ``requests`` are used, and
    all others are undone.
    """
    resolver = RequestResolver(tx, context, requests)
    received = [_receive(context, resolver, request, ahead) for request in requests]
    ahead.learn(resolver.known)
    ahead.undo()
    pending = [each for each in received if isinstance(each, PendingBoot)]
    conflicting = _claim_all(tx, context, pending)
    for _ in range(context.scheduling.claim_attempts_max - 1):
        if not conflicting:
            break
        context.follower.catch_up(tx)
        context.follower.reread(tx, {pid for each in conflicting for pid in each.plan.seen})
        for each in conflicting:
            resolver.place(each.resolved, ())
        for each in conflicting:
            each.resolved = resolver.resolve_again(each.resolved)
            _plan(context, each)
            resolver.place(each.resolved, each.homes)
        conflicting = _claim_all(tx, context, conflicting)
    for each in conflicting:
        each.outcome = ConcurrentUpdate("The chosen hosts kept changing; trying again may help.")
    server_rows.write(tx, [new for each in pending if (new := _new_servers(each))])
    return [each if isinstance(each, Refusal) else _outcome(each) for each in received]


def claimed(tx: Tx, context: DecisionContext, pending: PendingBoot) -> bool:
    """Claim the hosts of a planned request and write its servers.

    If a provider has changed since the plan was made, undo the plan and return False.
    """
    if _claim_all(tx, context, [pending]):
        return False
    made = _new_servers(pending)
    assert made is not None, "its claim was accepted"
    server_rows.write(tx, [made])
    return True


def _outcome(pending: PendingBoot) -> Booted | Refusal:
    assert pending.outcome is not None, "every pending request gets an outcome"
    return pending.outcome


def _new_servers(pending: PendingBoot) -> NewServers | None:
    if not isinstance(pending.outcome, Booted):
        return None
    entries = pending.plan.entries if pending.outcome.fault is None else ()
    return NewServers(
        pending.resolved,
        pending.outcome,
        pending.record,
        entries,
        pending.agents,
        pending.automatic_pclouds,
    )


def plan_ahead(context: DecisionContext, request: BootRequest, ahead: PlansAhead) -> bool:
    """Plan a request before its transaction begins, without reading the database.

    The plan takes into account all plans that were made ahead so far. Return False if the request
    cannot be planned ahead. Otherwise, subtract the plan's amounts from the host table and return
    True.
    """
    expected = ahead.expected(request)
    if expected is None:
        return False
    pending = PendingBoot(expected, _empty_plan(context))
    _plan_or_fail(context, pending)
    ahead.add(expected, pending.plan, pending.record, is_placed=pending.is_placed)
    return True


def _receive(
    context: DecisionContext, resolver: RequestResolver, request: BootRequest, ahead: PlansAhead
) -> PendingBoot | Refusal:
    try:
        resolved = resolver.resolve(request)
    except Refusal as refusal:
        return refusal
    made = ahead.take(resolved)
    if made is None:
        pending = PendingBoot(resolved, _empty_plan(context))
        _plan(context, pending)
    else:
        pending = PendingBoot(resolved, made.plan, made.record)
        # From now on, the plan is part of this transaction, and is undone with it.
        context.follower.touch(made.plan.seen)
    resolver.place(resolved, pending.homes)
    return pending


def _empty_plan(context: DecisionContext) -> BuildPlan:
    return BuildPlan((), {}, context.follower.table.host_count, 0, ())


def _plan(context: DecisionContext, pending: PendingBoot) -> None:
    pending.failure = None
    try:
        _plan_or_fail(context, pending)
    except PluginFailed as failure:
        plugins.log(failure)
        pending.failure = failure
        pending.plan = _empty_plan(context)
        pending.record = decisions.of_failed(context, pending.resolved, pending.plan)


def _plan_or_fail(context: DecisionContext, pending: PendingBoot) -> None:
    """Plan a request, and subtract the planned amounts from the host table.

    Raises the errors of :meth:`DecisionContext.decide`.
    """
    table, resolved = context.follower.table, pending.resolved
    moment = context.recorder.before(table)
    plan = context.decide(context.schedulers.of(resolved.filters), resolved.spec)
    context.follower.touch(plan.seen)
    pending.plan = plan
    if not pending.is_placed:
        # If too few hosts are found, no host is claimed.
        depletion.undo(table, resolved.spec, plan)
        pending.record = decisions.of_refused(context, resolved, plan, moment)
        return
    is_recorded = False
    try:
        pending.record = decisions.of_placed(context, resolved, plan, moment)
        is_recorded = True
    finally:
        if not is_recorded:
            depletion.undo(table, resolved.spec, plan)
    # The claim will advance the generations of these providers. The next request of the batch must
    # already see the new generations.
    table.expect_claim(plan.seen)


def _claim_all(
    tx: Tx, context: DecisionContext, pending: Sequence[PendingBoot]
) -> list[PendingBoot]:
    """Claim the planned hosts. Return the requests whose providers changed after the plan."""
    table = context.follower.table
    placed = [each for each in pending if each.is_placed]
    for each in pending:
        if not each.is_placed:
            each.outcome = _no_valid_host(each, masks.has_dedicated(table))
    if not placed:
        return []
    ready = [_claim(each, table.class_ids) for each in placed]
    refusals = claims.commit_together(tx, ready, placed[0].request.now)
    conflicting: list[PendingBoot] = []
    for each, refusal in zip(placed, refusals, strict=True):
        if refusal is not None:
            conflicting.append(each)
            continue
        entries = each.plan.entries
        each.outcome = Booted(each.request.batch_id, each.request.server_ids[: len(entries)])
        # The agents and pclouds are looked up now, because the next catch-up can move hosts to
        # other rows.
        each.agents = tuple(table.agent_of(entry.index) for entry in entries)
        each.automatic_pclouds = _automatic_pclouds(table, each)
    # In reverse order, each undo restores the generations that the plan before it has seen.
    for each in reversed(conflicting):
        depletion.undo(table, each.resolved.spec, each.plan)
        table.expect_no_claim(each.plan.seen)
    return conflicting


def _automatic_pclouds(table: HostTable, pending: PendingBoot) -> tuple[str | None, ...]:
    if not pending.resolved.spec.automatic_pclouds:
        return ()
    return tuple(
        table.dedications.uuid(int(table.dedication_codes[entry.index]))
        for entry in pending.plan.entries
    )


def _no_valid_host(pending: PendingBoot, has_dedicated: bool) -> Booted | Refusal:
    request, plan, refused = pending.request, pending.plan, pending.record.refused
    failure = pending.failure
    is_refused = request.destination is not None or request.is_refused_without_hosts
    server_ids = request.server_ids[: request.count_min]
    if failure is not None:
        if is_refused:
            return failure
        return Booted(
            request.batch_id,
            server_ids,
            reasons.NO_VALID_HOST + failure.message,
            refused_by=failure.plugin,
            details=f"{failure.plugin}: {failure.why}",
        )
    sentence = reasons.sentence(
        plan, request.count_min, refused.nearest, has_dedicated=has_dedicated
    )
    if is_refused:
        # A refused client tries the next entry of its build plan. If a server were created in
        # ERROR, the client would first have to delete this server.
        return EntryStale(sentence)
    return Booted(
        request.batch_id,
        server_ids,
        sentence,
        refused=refused,
        refused_by=reasons.culprit(plan, refused),
        counted_fault=reasons.counted(plan, request.count_min, refused.nearest),
    )


def _claim(pending: PendingBoot, class_ids: Mapping[str, ClassId]) -> Claim:
    request, spec = pending.request, pending.resolved.spec
    whole = {class_ids[name]: amount for name, amount in spec.amounts.items()}
    consumers = tuple(
        ConsumerClaim(
            uuid=ConsumerUuid(server_id),
            project_id=request.project_id,
            user_id=request.user_id,
            amounts=_split(entry, whole, class_ids) if entry.loans else {entry.provider_id: whole},
            seen=None,
            consumer_type=CONSUMER_TYPE,
            # A zone parent chooses the ids of its servers itself.
            is_new_id=_makes_ids(request),
        )
        for server_id, entry in zip(request.server_ids, pending.plan.entries, strict=False)
    )
    return Claim(consumers, dict(pending.plan.seen))


def _makes_ids(request: BootRequest) -> bool:
    """Return True if the request's server ids come from neither a zone parent nor a build plan."""
    # A zone parent chooses the ids of its servers.
    is_of_parent = request.definitions is not None or bool(request.entries)
    return request.destination is None and not is_of_parent


def _split(
    entry: Entry, whole: Mapping[ClassId, int], class_ids: Mapping[str, ClassId]
) -> dict[ProviderId, dict[ClassId, int]]:
    """Divide a server's amounts between its host and the pools that lend resources to the host."""
    parts = {entry.provider_id: dict(whole)}
    for each in entry.loans:
        class_id = class_ids[each.class_name]
        parts.setdefault(each.provider_id, {})[class_id] = parts[entry.provider_id].pop(class_id)
    return parts
