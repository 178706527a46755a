"""Create, list and end leases.

Source: ADR 0028 and ADR 0035.

Always true: a lease, its reservations, its reserved hosts and its events are written in one
transaction. If the start of a new lease is due at once, the lease begins before the client gets the
response.
"""

from __future__ import annotations

from collections.abc import Sequence

from innkeeper.domain.errors import Invalid, NotFound, Refusal
from innkeeper.domain.lease_searches import EVERY_LEASE, LeaseSearch
from innkeeper.domain.leases import ChosenHost, Demand, Lease, LeaseRequest, Window
from innkeeper.scheduling.leases.lacks import Lack
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries.leases import holds, leases
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import (
    booking,
    events,
    limits,
    nearest,
    notifications,
    refusals,
    resource_properties,
)
from innkeeper.systems.leases.context import LeaseContext


class DryRun(Refusal):
    """Raised at the end of a dry run to roll back its transaction."""

    def __init__(self) -> None:
        super().__init__("Nothing was changed, because this was a dry run.")


def page(
    tx: Tx,
    *,
    project_id: str | None,
    after: str | None = None,
    limit: int,
    wanted: LeaseSearch = EVERY_LEASE,
) -> list[Lease]:
    """Return a page of leases, newest first, after the lease ``after``.

    With a ``project_id``, the page has only leases that this project may see. Raises
    :class:`Invalid` if ``after`` is not the id of one of these leases.
    """
    before = None
    if after is not None:
        found = leases.by_uuid(tx, after)
        if found is None or project_id not in (None, *found.viewers):
            raise Invalid(f"The marker {after[:36]} is not a lease.")
        before = found.id
    return leases.page(tx, project_id=project_id, before=before, limit=limit, wanted=wanted)


def get(tx: Tx, uuid: str) -> Lease:
    """Return the lease with this id.

    Raises :class:`NotFound` if the lease does not exist, or was deleted.
    """
    found = leases.by_uuid(tx, uuid)
    if found is None or found.is_deleted:
        raise unknown(uuid)
    return found


def unknown(uuid: str) -> NotFound:
    """Return the error for a lease that does not exist, or that the caller must not see."""
    return NotFound(f"Object with {{'lease_id': '{uuid[:36]}'}} not found")


def create(
    tx: Tx,
    decision: DecisionContext,
    request: LeaseRequest,
    context: LeaseContext,
    *,
    with_nearest: bool = True,
) -> Lease:
    """Create a lease, reserve its hosts, and start the lease if its start is due.

    Raises :class:`NotEnough` if the lease does not fit. With ``with_nearest``, this error names the
    nearest window in which the lease fits. Raises :class:`Forbidden` if the lease is too long.
    Raises :class:`QuotaExceeded` if the lease exceeds a quota.
    """
    limits.demand_duration(request.window, request.project_id, context)
    demands = [each.demand for each in request.reservations]
    resource_properties.demand_visible(tx, demands, context)
    chosen = _book(
        tx, decision.follower.table, demands, request.window, context, with_nearest=with_nearest
    )
    made = leases.add(tx, request, context.now)
    for reservation, some in zip(made.reservations, chosen, strict=True):
        holds.add(tx, reservation.id, {each.host_id: each.units for each in some})
    limits.demand(tx, made, context)
    notifications.add(tx, notifications.CREATED, made, context)
    if made.start_at > context.now:
        return made
    events.start(tx, made, context)
    return get(tx, made.uuid)


def _book(
    tx: Tx,
    table: HostTable,
    demands: Sequence[Demand],
    window: Window,
    context: LeaseContext,
    *,
    with_nearest: bool,
) -> list[list[ChosenHost]]:
    """Choose and claim units (hosts or slots) for all demands of a lease."""
    found = booking.look(table, demands, window, context)
    if isinstance(found, Lack):
        other = nearest.window(table, demands, window, context) if with_nearest else None
        raise refusals.of(found, demands, other)
    chosen = booking.choices(table.calendar, found)
    booking.claim(tx, demands, chosen, window, context)
    return chosen


def delete(tx: Tx, lease: Lease, context: LeaseContext) -> None:
    """End a lease now and hide it.

    A host with servers becomes free once the servers are gone.
    """
    notifications.add(tx, notifications.DELETED, lease, context)
    leases.change(tx, lease.id, context.now, is_deleted=True)
    leases.bring_forward(tx, lease.end_event, context.now)
    again = leases.by_uuid(tx, lease.uuid)
    assert again is not None, "the lease is hidden, not removed"
    events.end(tx, again, context)
