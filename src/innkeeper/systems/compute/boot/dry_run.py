"""Choose hosts as a boot would, without claiming them, for build plans and explanations.

Always true: a request that a boot would refuse is refused with the same message. The host table is
unchanged afterwards. If a plug-in fails, this module raises :class:`PluginFailed`, although a boot
would create servers in ERROR.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.errors import Invalid, UnknownPlace
from innkeeper.domain.explaining import Explanation
from innkeeper.domain.ids import HostIndex
from innkeeper.domain.zones import Destination, Planned, ZonePlan
from innkeeper.scheduling import depletion, explaining, reasons
from innkeeper.scheduling.recordings import Recording
from innkeeper.snapshot import recording
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries.compute import hosts
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.recordings import DecisionRequest
from innkeeper.systems.compute.boot.request_resolver import RequestResolver, check_place
from innkeeper.systems.compute.boot.resolved_requests import ResolvedRequest


@dataclass(frozen=True, slots=True)
class Question:
    """A boot whose decision is to be explained.

    If ``host`` is given, the explanation also says why this host is accepted or removed. With
    ``is_record_wanted``, the decision is also recorded.
    """

    request: BootRequest
    host: str | None = None
    is_record_wanted: bool = False


@dataclass(frozen=True, slots=True)
class Explained:
    """The explanation, and the recording of the decision if one was requested.

    ``placed`` has the weights of the hosts that were found, even if too few hosts were found.
    ``unknown`` is the error for a requested host or availability zone that this zone lacks.
    """

    explanation: Explanation
    recording: Recording | None
    placed: tuple[float, ...] = ()
    unknown: UnknownPlace | None = None


def plan(tx: Tx, context: DecisionContext, request: BootRequest) -> ZonePlan:
    """Choose a host for each server id of a request, and return the planned servers.

    The client can later boot each planned server with an entry of the plan. The server then has the
    planned id. If too few hosts are found, some ids have no planned server.
    """
    return plan_resolved(tx, context, RequestResolver(tx, context, [request]).resolve(request))


def plan_resolved(tx: Tx, context: DecisionContext, resolved: ResolvedRequest) -> ZonePlan:
    """Do the work of :func:`plan` for a request that is already resolved."""
    request = resolved.request
    made = context.decide(context.schedulers.of(resolved.filters), resolved.spec)
    depletion.undo(context.follower.table, resolved.spec, made)
    uuids = hosts.provider_uuids(tx, [entry.provider_id for entry in made.entries])
    planned = tuple(
        Planned(Destination(server_id, entry.host, uuids[entry.provider_id]), entry.weight)
        for server_id, entry in zip(request.server_ids, made.entries, strict=False)
    )
    return ZonePlan(planned, resolved.request.count_max)


def explain(tx: Tx, context: DecisionContext, question: Question) -> Explained:
    """Choose hosts for a boot without claiming them, and explain the decision."""
    table, request = context.follower.table, question.request
    resolved = RequestResolver(tx, context, [request]).resolve(request)
    row = None if question.host is None else _row(table, question.host)
    moment = recording.copy_of(table) if question.is_record_wanted else None
    scheduler = context.schedulers.of(resolved.filters)
    made = context.decide(scheduler, resolved.spec)
    depletion.undo(table, resolved.spec, made)
    deciders = explaining.deciders(scheduler, context.scheduling.host_subset_size, request.seed)
    explanation = explaining.explain(scheduler.pipeline, table, resolved.spec, made, deciders, row)
    explanation = replace(explanation, unread=resolved.unread)
    if len(made.entries) < request.count_min:
        nearest = (explanation.then or explanation).nearest
        has_dedicated = explanation.has_dedicated
        explanation = replace(
            explanation,
            fault=reasons.sentence(made, request.count_min, nearest, has_dedicated=has_dedicated),
            counted_fault=reasons.counted(made, request.count_min, nearest),
            chosen=(),
        )
    recorded = None
    if moment is not None:
        decision = DecisionRequest(resolved.spec, resolved.filters, request.now, request.batch_id)
        recorded = context.recorder.made_of(decision, made, moment)
    placed = tuple(entry.weight for entry in made.entries)
    return Explained(explanation, recorded, placed, _unknown_place(table, request))


def _unknown_place(table: HostTable, request: BootRequest) -> UnknownPlace | None:
    try:
        check_place(table, request)
    except UnknownPlace as error:
        return error
    return None


def _row(table: HostTable, name: str) -> HostIndex:
    index = table.index_by_name.get(name)
    if index is None:
        raise Invalid(f"Compute host {name} could not be found.")
    return index
