"""Share leases with other projects, and hand them over to another owner.

Always true: only the owner of a lease, and the projects that share it, have access to the flavors
of its reservations. A project becomes the owner only if the lease fits into the project's quotas.
The project must also consent, unless an administrator hands the lease over. A change never affects
servers that already run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from innkeeper.domain.errors import AlreadyExists, Conflict, Invalid, NotFound
from innkeeper.domain.leases import Lease, Reservation, ReservationState
from innkeeper.store.queries.leases import freepool_usage, holds, leases
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.identity import projects
from innkeeper.systems.leases import freepool, limits, notifications, pools, refusals
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.placement import providers

PROJECTS_MAX = 100
"""The maximum number of projects that share a lease."""
SHOWN_MAX = 60


class LeaseOptions(TypedDict, total=False):
    """The options of a lease, apart from its window and reservations.

    Absent options stay unchanged. ``project_id`` is the project that the lease is offered to. If it
    is ``None``, an offer is withdrawn. If ``idle_grace_s`` is ``None``, an unused lease does not
    end early.
    """

    shared_with: tuple[str, ...]
    idle_grace_s: int | None
    project_id: str | None


def demand_projects(tx: Tx, given: Iterable[str], context: LeaseContext) -> None:
    """Raise :class:`Invalid` for an unknown project.

    Without ``context.knows_projects``, every project is accepted, because this database does not
    have all projects.
    """
    for project_id in given if context.knows_projects else ():
        try:
            projects.get(tx, project_id)
        except NotFound:
            raise Invalid(f"Project {project_id[:SHOWN_MAX]} does not exist.") from None


def others(owner: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return the ``given`` projects without the owner, sorted and without duplicates."""
    return tuple(sorted({*given} - {owner}))


def change(
    tx: Tx, lease: Lease, options: LeaseOptions, context: LeaseContext, *, may_give: bool
) -> Lease:
    """Change the options of a lease.

    With ``may_give``, a new owner gets the lease at once. Without ``may_give``, the lease is
    offered to the new owner, which may accept the offer. A request may name the present owner,
    because clients send back what they read. Raises :class:`Invalid` if the lease is over.
    """
    if not options:
        return lease
    refusals.demand_not_over(lease)
    if "idle_grace_s" in options and options["idle_grace_s"] != lease.idle_grace_s:
        grace_s = options["idle_grace_s"]
        leases.change(tx, lease.id, context.now, idle_grace_s=grace_s, idle_since=None)
    if "shared_with" in options:
        share(tx, lease, options["shared_with"], context)
    if "project_id" in options:
        receiver = options["project_id"]
        if receiver is None:
            leases.change(tx, lease.id, context.now, offered_to=None)
        elif receiver != lease.project_id:
            demand_projects(tx, [receiver], context)
            if may_give:
                give(tx, _again(tx, lease), receiver, lease.user_id, context)
            else:
                leases.change(tx, lease.id, context.now, offered_to=receiver)
    return _again(tx, lease)


def share(tx: Tx, lease: Lease, given: Sequence[str], context: LeaseContext) -> None:
    """Set the projects that may use a lease besides its owner.

    If a project loses access, its servers keep running until the lease ends.
    """
    after = others(lease.project_id, given)
    if after == lease.shared_with:
        return
    demand_projects(tx, {*after} - {*lease.shared_with}, context)
    leases.share(tx, lease.id, after)
    leases.change(tx, lease.id, context.now)
    _set_users(tx, lease, {lease.project_id, *after}, context)


def accept(tx: Tx, lease: Lease, user_id: str, context: LeaseContext) -> Lease:
    """Hand a lease over to the project to which it is offered.

    Raises :class:`Conflict` if the lease is not offered. Raises :class:`QuotaExceeded` if the lease
    exceeds a quota of the project.
    """
    if lease.offered_to is None:
        raise Conflict(f"Lease {lease.uuid} is not offered to a project.")
    refusals.demand_not_over(lease)
    given = give(tx, lease, lease.offered_to, user_id, context)
    notifications.add(tx, notifications.UPDATED, given, context)
    return given


def decline(tx: Tx, lease: Lease, context: LeaseContext) -> Lease:
    """Withdraw the offer of a lease. Raises :class:`Conflict` if the lease is not offered."""
    if lease.offered_to is None:
        raise Conflict(f"Lease {lease.uuid} is not offered to a project.")
    leases.change(tx, lease.id, context.now, offered_to=None)
    notifications.add(tx, notifications.UPDATED, lease, context)
    return _again(tx, lease)


def give(tx: Tx, lease: Lease, receiver: str, user_id: str, context: LeaseContext) -> Lease:
    """Make another project the owner of a lease, if the lease is within the project's limits.

    The former owner may no longer use the lease, unless the lease is also shared with it. The
    servers of the former owner keep running until the lease ends.
    """
    limits.demand_duration(lease.window, receiver, context)
    shared = others(receiver, lease.shared_with)
    leases.share(tx, lease.id, shared)
    leases.change(tx, lease.id, context.now, project_id=receiver, user_id=user_id, offered_to=None)
    changed = _again(tx, lease)
    limits.demand(tx, changed, context)
    for each in _begun(changed):
        pools.set_owner(tx, changed, each, context.now)
        _give_group(tx, each, receiver)
        _charge(tx, each, context)
    _set_users(tx, lease, {receiver, *shared}, context)
    return changed


def _give_group(tx: Tx, reservation: Reservation, receiver: str) -> None:
    if reservation.group_uuid is None:
        return
    try:
        groups.give(tx, reservation.group_uuid, receiver)
    except NotFound:
        # The former owner deleted the group.
        return


def _charge(tx: Tx, reservation: Reservation, context: LeaseContext) -> None:
    """Charge the new owner of a lease for the hosts of a reservation from now on."""
    held = holds.of_reservation(tx, reservation.id, is_active=True)
    rows = [each.host_id for each in held if each.units]
    freepool_usage.end(tx, reservation.uuid, rows, context.now)
    freepool_usage.begin(tx, reservation.id, rows, context.now)


def _set_users(tx: Tx, lease: Lease, after: set[str], context: LeaseContext) -> None:
    """Give and withdraw access to the reservations of a lease that have begun.

    ``lease`` is the lease before the change.
    """
    before = {lease.project_id, *lease.shared_with}
    begun = _begun(lease)
    for each in begun:
        if not each.is_whole:
            _set_access(tx, each, before, after)
    # Because of the new generations, host tables read again which projects may use these hosts.
    ending = [each for each in lease.reservations if each.state == ReservationState.ENDING]
    whole = [each.id for each in (*begun, *ending) if each.is_whole]
    held = holds.of_reservations(tx, whole)
    rows = {each.host_id for some in held.values() for each in some if each.is_active}
    ids = [each.provider_id for each in freepool.members(tx, rows).values()]
    providers.advance_all(tx, ids, context.now)


def _set_access(tx: Tx, reservation: Reservation, before: set[str], after: set[str]) -> None:
    # An existing access is no error, because administrators can change a flavor's access list.
    for project_id in sorted(after - before):
        try:
            flavors.add_project(tx, reservation.uuid, project_id)
        except AlreadyExists:
            continue
    for project_id in sorted(before - after):
        try:
            flavors.remove_project(tx, reservation.uuid, project_id)
        except NotFound:
            continue


def _begun(lease: Lease) -> list[Reservation]:
    """Return the reservations that have begun.

    Each of these reservations has an aggregate. A reservation of slots also has a flavor.
    """
    return [
        each
        for each in lease.reservations
        if each.aggregate_id is not None and each.state in ReservationState.PRESENT
    ]


def _again(tx: Tx, lease: Lease) -> Lease:
    found = leases.by_uuid(tx, lease.uuid)
    assert found is not None, "the lease is being changed"
    return found
