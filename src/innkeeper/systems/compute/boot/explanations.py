"""Where a boot would go and why, decided as a boot is, with nothing claimed.

Always true: what would refuse the boot refuses the question in the same words, and the table is
afterwards as it was. Where a filter or weigher of the operator's own fails, the boot's servers
would be in ERROR; the question is refused with :class:`PluginFailed`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.errors import Invalid
from innkeeper.domain.explaining import Explanation
from innkeeper.domain.ids import HostIndex
from innkeeper.scheduling import depletion, explaining, reasons
from innkeeper.scheduling.recordings import Recording
from innkeeper.snapshot import recording
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.recordings import DecisionRequest
from innkeeper.systems.compute.boot.request_resolver import RequestResolver


@dataclass(frozen=True, slots=True)
class Question:
    """A boot that is only asked about; ``host`` is one about which somebody wants to know."""

    request: BootRequest
    host: str | None = None
    is_record_wanted: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """The answer, and the recording of it if one was wanted."""

    explanation: Explanation
    recording: Recording | None


def answer(tx: Tx, context: DecisionContext, question: Question) -> Told:
    """Decide without writing, and tell why."""
    table, request = context.follower.table, question.request
    taken = RequestResolver(tx, context, [request]).take(request)
    asked = None if question.host is None else _row(table, question.host)
    moment = recording.copy_of(table) if question.is_record_wanted else None
    scheduler = context.schedulers.of(taken.filters)
    made = context.decide(scheduler, taken.spec)
    depletion.undo(table, taken.spec, made)
    told = explaining.explain(
        scheduler.pipeline,
        table,
        taken.spec,
        made,
        explaining.deciders(scheduler, context.scheduling.host_subset_size, request.seed),
        asked,
    )
    told = replace(told, unread=taken.unread)
    if len(made.entries) < request.count_min:
        nearest = (told.then or told).nearest
        fault = reasons.sentence(made, request.count_min, nearest, has_dedicated=told.has_dedicated)
        counted = reasons.counted(made, request.count_min, nearest)
        told = replace(told, fault=fault, counted_fault=counted, chosen=())
    kept = None
    if moment is not None:
        asked_for = DecisionRequest(taken.spec, taken.filters, request.now, request.batch_id)
        kept = context.recorder.made_of(asked_for, made, moment)
    return Told(told, kept)


def _row(table: HostTable, name: str) -> HostIndex:
    index = table.index_by_name.get(name)
    if index is None:
        raise Invalid(f"Compute host {name} could not be found.")
    return index
