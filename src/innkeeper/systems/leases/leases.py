"""Leases: made with all that they hold, renamed, and ended.

Source: the seed about reservations; so far with those of whole hosts alone.

Always true: a lease, its reservations, what they hold and its two events are written in one
transaction, or nothing of them. No two leases hold one host at the same moment: writers take
turns, and beside that each hold moves the generation of its host's provider before it is looked
who else holds it. A lease that begins at once has begun when its maker is answered.
"""

from __future__ import annotations

from collections.abc import Sequence

from innkeeper.domain.errors import Conflict, Invalid, NotFound, Overtaken
from innkeeper.domain.leases import Lease, LeaseEventKind, LeaseRequest, Lendable, Window
from innkeeper.store.queries.leases import freepool, holds, leases
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import calendar, events
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.placement import ratios

NOT_ENOUGH = "Not enough hosts available"
"""Clients match on these words."""
NO_FREE_HOST = "no_free_host"


def page(tx: Tx, *, project_id: str | None, after: str | None = None, limit: int) -> list[Lease]:
    """Leases of a project, or of all, the newest first; behind the one with the id ``after``.

    Raises :class:`Invalid` for an ``after`` that is none of them.
    """
    before = None
    if after is not None:
        found = leases.by_uuid(tx, after)
        if found is None or project_id not in (None, found.project_id):
            raise Invalid(f"The marker {after[:36]} is no lease.")
        before = found.id
    return leases.page(tx, project_id=project_id, before=before, limit=limit)


def get(tx: Tx, uuid: str) -> Lease:
    """The lease with this id; else, and if it was deleted, :class:`NotFound`."""
    found = leases.by_uuid(tx, uuid)
    if found is None or found.is_deleted:
        raise unknown(uuid)
    return found


def unknown(uuid: str) -> NotFound:
    """What is said of a lease that is not there, or not to be known of."""
    return NotFound(f"Object with {{'lease_id': '{uuid[:36]}'}} not found")


def create(tx: Tx, request: LeaseRequest, context: LeaseContext) -> Lease:
    """Make a lease that holds what it reserves; begin it, if its time has come.

    Raises :class:`Conflict` (``no_free_host``) where there are not enough hosts for all of it.
    """
    found = chosen(tx, request, context)
    take(tx, [each for hosts in found for each in hosts], request.window, context)
    made = leases.add(tx, request, context.now)
    for reservation, hosts in zip(made.reservations, found, strict=True):
        holds.add(tx, reservation.id, [each.host_id for each in hosts])
    if made.start_at <= context.now:
        events.start(tx, made, context)
    return get(tx, made.uuid)


def chosen(tx: Tx, request: LeaseRequest, context: LeaseContext) -> list[list[Lendable]]:
    """The hosts for each reservation of a lease, none of them for two.

    Raises :class:`Conflict` (``no_free_host``) where there are not enough for one.
    """
    present = freepool.lendable(tx, context.heard_since)
    held = holds.held_in(tx, request.window)
    found = calendar.deal(present, held, request.reservations, context.seed)
    if found is None:
        raise Conflict(NOT_ENOUGH, code=NO_FREE_HOST)
    return found


def take(tx: Tx, wanted: Sequence[Lendable], window: Window, context: LeaseContext) -> None:
    """Move the generations of hosts that are to be held, and look that nobody else holds them.

    Raises :class:`Overtaken` if somebody does. That catches a writer who wrongly believes to
    have the turn: both move the host's generation before they look, so the second one waits
    for the first, and then sees its hold.
    """
    for each in sorted(wanted, key=lambda one: one.host_id):
        ratios.advance(tx, each.provider_uuid, context.now)
    if not holds.held_in(tx, window).isdisjoint(each.host_id for each in wanted):
        raise Overtaken("The chosen hosts were held by somebody else at the same moment.")


def rename(tx: Tx, lease: Lease, name: str, context: LeaseContext) -> Lease:
    """Give a lease another name, whatever its state."""
    if name != lease.name:
        leases.change(tx, lease.id, context.now, name=name)
    return get(tx, lease.uuid)


def delete(tx: Tx, lease: Lease, context: LeaseContext) -> None:
    """End a lease now, and forget it.

    Its owner sees it no more. What it holds is free for others at once; a host with servers of
    it is, when these are gone.
    """
    leases.change(tx, lease.id, context.now, is_deleted=True)
    leases.bring_forward(tx, lease.events[LeaseEventKind.END], context.now)
    again = leases.by_uuid(tx, lease.uuid)
    assert again is not None, "it is still there, and hidden"
    events.end(tx, again, context)
