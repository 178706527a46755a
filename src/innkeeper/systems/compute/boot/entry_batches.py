"""Boot the servers of all build plan entries that a zone parent sends in one request.

The entries of one request have the same flavor, image and project. So one decision checks the hosts
of all entries, and one claim commits all servers. If a host does not take its server in this common
decision, a separate decision is made for the server's entry.

Always true: the outcome of an entry is the same as if the entries had come in separate requests,
one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from msgspec.structs import replace

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import PluginFailed, Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zones import EntryBoot
from innkeeper.scheduling import depletion
from innkeeper.scheduling.schedulers.picking import NamedPlan, PickingScheduler
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import boot, decisions, plugins
from innkeeper.systems.compute.boot.boot import PendingBoot
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.request_resolver import RequestResolver
from innkeeper.systems.compute.boot.resolved_requests import ResolvedRequest

Outcomes = dict[ServerId, Booted | Refusal]
"""The outcome of each build plan entry, by server id."""


def boot_entries(tx: Tx, context: DecisionContext, request: BootRequest) -> Outcomes:
    """Boot the build plan entries that one common decision can handle.

    The result lacks the entries that need separate decisions. The caller boots these entries with
    the requests of :func:`alone`.
    """
    outcomes: Outcomes = {}
    if not _have_one_decision(context, request):
        return outcomes
    resolver = RequestResolver(tx, context, [request])
    usable: list[EntryBoot] = []
    for each in _distinct(request.entries):
        try:
            resolver.check_entry(each, request.now)
        except Refusal as refusal:
            outcomes[each.server_id] = refusal
        else:
            usable.append(each)
    pending = _planned(context, resolver, _part(request, usable)) if usable else None
    if pending is not None and boot.claimed(tx, context, pending):
        batch_id = request.batch_id
        outcomes |= {each: Booted(batch_id, (each,)) for each in pending.request.server_ids}
    return outcomes


def alone(request: BootRequest, entry: EntryBoot) -> BootRequest:
    """Return a request that boots only the server of one entry."""
    return replace(
        request,
        entries=(),
        name=entry.name,
        hostname=entry.hostname,
        server_ids=(entry.server_id,),
        count_min=1,
        count_max=1,
        launch_indexes=(entry.launch_index,),
        is_numbered=False,
        destination=entry.destination,
        entry_id=entry.entry_id,
        expires_at=entry.expires_at,
    )


def _part(request: BootRequest, entries: Sequence[EntryBoot]) -> BootRequest:
    return replace(
        request,
        entries=tuple(entries),
        server_ids=tuple(each.server_id for each in entries),
        launch_indexes=tuple(each.launch_index for each in entries),
        count_min=1,
        count_max=len(entries),
    )


def _have_one_decision(context: DecisionContext, request: BootRequest) -> bool:
    """Return True if one decision can check all entries, and no separate records are needed."""
    # A hint may name a server group, whose rule changes with each server that joins it.
    return (
        not request.hints
        and context.scheduling.explain_decisions != "full"
        and not context.recorder.is_on
        and isinstance(context.schedulers.of(None), PickingScheduler)
    )


def _distinct(entries: Sequence[EntryBoot]) -> list[EntryBoot]:
    """Return the entries without duplicates. The first entry with each id is kept."""
    return list({each.entry_id: each for each in reversed(entries)}.values())[::-1]


def _planned(
    context: DecisionContext, resolver: RequestResolver, request: BootRequest
) -> PendingBoot | None:
    """Plan the entries whose hosts accept their servers.

    Return ``None`` if there are no such entries, or if the common decision fails.
    """
    try:
        resolved = resolver.resolve(request)
        if resolved.request.count_max < request.count_max:
            # The quota allows only some of the servers.
            return None
        found = _checked(context, resolved)
    except PluginFailed as failure:
        plugins.log(failure)
        return None
    except Refusal:
        # The separate decisions about the entries will raise the error again.
        return None
    if not found.places:
        return None
    table, made = context.follower.table, found.plan
    context.follower.touch(made.seen)
    placed = [request.entries[place] for place in found.places]
    resolved = replace(resolved, request=_part(resolved.request, placed))
    with ExitStack() as undoing:
        undoing.callback(depletion.undo, table, resolved.spec, made)
        record = decisions.of_named(context, resolved, made)
        undoing.pop_all()
    table.expect_claim(made.seen)
    return PendingBoot(resolved, made, record)


def _checked(context: DecisionContext, resolved: ResolvedRequest) -> NamedPlan:
    scheduler = context.schedulers.of(None)
    assert isinstance(scheduler, PickingScheduler), "it was checked"
    names = [each.host for each in resolved.request.entries]
    found = scheduler.plan_named(context.follower.table, resolved.spec, names)
    return found
