"""Create, rename and end leases.

Source: the seed about reservations. Only reservations of whole hosts are implemented.

Always true: a lease, its reservations, holds and events are written in one transaction. No two
leases hold the same host at the same time. To ensure this, writers take turns, and each hold
advances the generation of its host's provider before the check for other holds. A lease that is due
at once is started before the client gets the response.
"""

from __future__ import annotations

from collections.abc import Sequence

from innkeeper.domain.errors import Conflict, Invalid, NotFound, Overtaken
from innkeeper.domain.leases import AvailableHost, Lease, LeaseEventKind, LeaseRequest, Window
from innkeeper.store.queries.leases import freepool, holds, leases
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import calendar, events
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.placement import ratios

NOT_ENOUGH = "Not enough hosts available"
"""Clients recognize the error by these words."""
NO_FREE_HOST = "no_free_host"


def page(tx: Tx, *, project_id: str | None, after: str | None = None, limit: int) -> list[Lease]:
    """Return a page of leases of one project or of all, newest first, after the lease ``after``.

    Raises :class:`Invalid` if ``after`` is not the id of one of these leases.
    """
    before = None
    if after is not None:
        found = leases.by_uuid(tx, after)
        if found is None or project_id not in (None, found.project_id):
            raise Invalid(f"The marker {after[:36]} is not a lease.")
        before = found.id
    return leases.page(tx, project_id=project_id, before=before, limit=limit)


def get(tx: Tx, uuid: str) -> Lease:
    """Return the lease with this id. Raises :class:`NotFound` also for a deleted lease."""
    found = leases.by_uuid(tx, uuid)
    if found is None or found.is_deleted:
        raise unknown(uuid)
    return found


def unknown(uuid: str) -> NotFound:
    """Return the error for a lease that does not exist, or that the caller may not see."""
    return NotFound(f"Object with {{'lease_id': '{uuid[:36]}'}} not found")


def create(tx: Tx, request: LeaseRequest, context: LeaseContext) -> Lease:
    """Create a lease with its holds, and start it if it is due.

    Raises what :func:`chosen` and :func:`take` raise.
    """
    found = chosen(tx, request, context)
    take(tx, [each for hosts in found for each in hosts], request.window, context)
    made = leases.add(tx, request, context.now)
    for reservation, hosts in zip(made.reservations, found, strict=True):
        holds.add(tx, reservation.id, [each.host_id for each in hosts])
    if made.start_at <= context.now:
        events.start(tx, made, context)
    return get(tx, made.uuid)


def chosen(tx: Tx, request: LeaseRequest, context: LeaseContext) -> list[list[AvailableHost]]:
    """Choose distinct hosts for each reservation. Raises :class:`Conflict` if too few are free."""
    present = freepool.available(tx, context.seen_since)
    held = holds.held_in(tx, request.window)
    found = calendar.deal(present, held, request.reservations, context.seed)
    if found is None:
        raise Conflict(NOT_ENOUGH, code=NO_FREE_HOST)
    return found


def take(tx: Tx, hosts: Sequence[AvailableHost], window: Window, context: LeaseContext) -> None:
    """Advance the generations of chosen hosts, and check that no other lease holds them.

    Raises :class:`Overtaken` if another lease holds a host. This stops a writer that wrongly
    assumes that it is its turn. Both writers advance the generation before they check, so the
    second writer waits for the first and then sees its hold.
    """
    for each in sorted(hosts, key=lambda one: one.host_id):
        ratios.advance(tx, each.provider_uuid, context.now)
    if not holds.held_in(tx, window).isdisjoint(each.host_id for each in hosts):
        raise Overtaken("Another lease took the chosen hosts at the same moment.")


def rename(tx: Tx, lease: Lease, name: str, context: LeaseContext) -> Lease:
    """Rename a lease in any state."""
    if name != lease.name:
        leases.change(tx, lease.id, context.now, name=name)
    return get(tx, lease.uuid)


def delete(tx: Tx, lease: Lease, context: LeaseContext) -> None:
    """End a lease now and hide it. Hosts with servers become free once the servers are gone."""
    leases.change(tx, lease.id, context.now, is_deleted=True)
    leases.bring_forward(tx, lease.events[LeaseEventKind.END], context.now)
    again = leases.by_uuid(tx, lease.uuid)
    assert again is not None, "the lease is hidden, not removed"
    events.end(tx, again, context)
