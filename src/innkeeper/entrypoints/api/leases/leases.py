"""Leases, for the projects that own them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from innkeeper.clients import lease_checks
from innkeeper.domain.errors import Invalid
from innkeeper.domain.lease_searches import LeaseSearch
from innkeeper.domain.leases import Lease
from innkeeper.engine.commands import Deciding
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api import faults
from innkeeper.entrypoints.api.leases import bodies, external_check, options
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.routing import JSON, Answer, Call
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import leases, rendering, sharing, updates
from innkeeper.systems.leases.context import LeaseContext

T = TypeVar("T")
RULE = "blazar:leases"
GET = f"{RULE}:get"
ALL_PROJECTS = f"{GET}:all_projects"
GIVE = f"{RULE}:put:project_id"
LINES_OF_AN_END = 100
"""An estimate of the number of rows that the end of a lease writes."""
second = rendering.second


def lease_context(call: Call) -> LeaseContext:
    """Return the context of a call in the form that the leases system needs."""
    return LeaseContext(
        service_down_time_s=call.site.settings.computing.service_down_time_s,
        initiator=call.initiator(),
        now=call.now,
        seed=call.site.ids.seed(),
        leasing=call.site.settings.leasing,
        types=call.site.resource_types,
        knows_projects=call.site.settings.authenticating.auth == "builtin",
    )


def project_of(call: Call) -> str:
    """Return the project of the call's token. Raises :class:`Invalid` if there is no project."""
    project_id = call.context.project_id
    if project_id is None:
        raise Invalid("A lease requires a token with project scope.")
    return project_id


def search_of(call: Call) -> LeaseSearch:
    """Return the conditions in a query that the listed leases must meet."""
    status = call.last("status")
    known = {shown: each for each, shown in rendering.STATUSES.items()}
    if status is not None and status.upper() not in known:
        raise Invalid(f"Malformed parameter status: use one of {', '.join(known)}")
    since, until = call.last("start_date"), call.last("end_date")
    return LeaseSearch(
        call.last("name"),
        None if status is None else known[status.upper()],
        call.last("project_id"),
        call.last("series_id"),
        None if since is None else bodies.moment(since, call.now),
        None if until is None else bodies.moment(until, call.now),
    )


async def index(call: Call) -> Answer:
    """List leases, newest first."""
    limit, wanted = limit_of(call), search_of(call)
    project_id = None if call.allows(ALL_PROJECTS) else project_of(call)
    found = await call.read(
        lambda tx: leases.page(
            tx, project_id=project_id, after=call.last("marker"), limit=limit, wanted=wanted
        )
    )
    # Check the policy once per owner, because many leases have few owners, and each check takes
    # time.
    owners = {each.project_id for each in found}
    owned = {each for each in owners if call.allows(GET, project_id=each)}
    text = await written_list(
        found, lambda each: _shown(call, each, is_all=each.project_id in owned)
    )
    return Answer(200, text, {"content-type": JSON})


async def written_list(leases: Sequence[Lease], show: Callable[[Lease], Any]) -> bytes:
    """Return a list of leases as JSON. This runs in a thread, because a long list takes seconds."""
    return await asyncio.to_thread(json_of, leases, show)


def json_of(leases: Sequence[Lease], show: Callable[[Lease], Any]) -> bytes:
    """Return a list of leases as JSON.

    Each lease is encoded in its own call, because all other threads wait while the encoder runs.
    """
    return b'{"leases":[%b]}' % b",".join(faults.encode(show(each)) for each in leases)


async def show(call: Call) -> Answer:
    """Show a lease."""
    return Answer(200, {"lease": shown(call, await call.read(lambda tx: _owned(tx, call)))})


async def update(call: Call) -> Answer:
    """Change the name, the window, the reservations, the users or the owner of a lease."""
    present = await call.read(lambda tx: _owned(tx, call))
    chosen, body = options.take(call.body)
    wanted = updates.LeaseChange()
    if body or not chosen:
        wanted = bodies.change_of(body, call.now, call.site.ids)
    context, is_dry = lease_context(call), bodies.is_dry(call.last("dry_run"))
    may_give = call.allows(GIVE, project_id=present.project_id)

    def work(tx: Tx, decision: DecisionContext) -> list[Lease]:
        lease = sharing.change(tx, _owned(tx, call), chosen, context, may_give=may_give)
        return [updates.change(tx, decision, lease, wanted, context)]

    await external_check.ask_first(
        call, lease_checks.UPDATE, work, current=lambda tx: _owned(tx, call)
    )
    (lease,) = await decided(call, work, is_dry=is_dry)
    return Answer(200, {"lease": shown(call, lease)})


async def accept(call: Call) -> Answer:
    """Take over a lease that was offered to the caller's project."""
    context, user_id = lease_context(call), call.context.user_id or ""

    def work(tx: Tx, _decision: DecisionContext) -> list[Lease]:
        return [sharing.accept(tx, _offered(tx, call), user_id, context)]

    await external_check.ask_first(
        call, lease_checks.UPDATE, work, current=lambda tx: _offered(tx, call)
    )
    (lease,) = await decided(call, work, is_dry=False)
    return Answer(200, {"lease": shown(call, lease)})


async def decline(call: Call) -> Answer:
    """Decline a lease that was offered to the caller's project."""
    context = lease_context(call)
    await call.write(lambda tx: sharing.decline(tx, _offered(tx, call), context), retry=WHOLE_HOSTS)
    return Answer(204)


async def decided(call: Call, work: Deciding[T], *, is_dry: bool) -> T:
    """Run ``work`` in a transaction, and return its result. A dry run is rolled back."""
    made: list[T] = []

    def act(tx: Tx, decision: DecisionContext) -> T:
        made[:] = [work(tx, decision)]
        if is_dry:
            raise leases.DryRun
        return made[0]

    try:
        return await call.decide(act, WHOLE_HOSTS)
    except leases.DryRun:
        return made[0]


async def delete(call: Call) -> Answer:
    """End a lease, and delete the servers on its hosts."""
    context = lease_context(call)
    await call.write(
        lambda tx: leases.delete(tx, _owned(tx, call), context), LINES_OF_AN_END, WHOLE_HOSTS
    )
    return Answer(204)


def _owned(tx: Tx, call: Call) -> Lease:
    """Return the lease in the path. Raises an error if the route's rule denies access.

    Projects may also see a lease that is shared with them or offered to them. If the caller may see
    the lease but not change it, a change gets a 403. If the caller may not see the lease, any call
    gets a 404.
    """
    rule = call.rule
    found = leases.get(tx, call.params["lease_id"])
    if not call.allows(rule, project_id=found.project_id):
        _demand_sight(call, found)
        if rule != GET:
            call.demand(rule, project_id=found.project_id)
    return found


def _offered(tx: Tx, call: Call) -> Lease:
    """Return the lease in the path, if the caller's project may accept or decline it."""
    found = leases.get(tx, call.params["lease_id"])
    _demand_sight(call, found)
    receiver = found.project_id if found.offered_to is None else found.offered_to
    call.demand(call.rule, project_id=receiver)
    return found


def _demand_sight(call: Call, lease: Lease) -> None:
    if not any(call.allows(GET, project_id=each) for each in lease.viewers):
        raise leases.unknown(call.params["lease_id"])


def shown(call: Call, lease: Lease) -> dict[str, Any]:
    """Return a lease as the caller may see it.

    Only the owner sees all projects that share the lease.
    """
    return _shown(call, lease, is_all=call.allows(GET, project_id=lease.project_id))


def _shown(call: Call, lease: Lease, *, is_all: bool) -> dict[str, Any]:
    body = rendering.shown(lease, call.site.resource_types)
    if is_all:
        return body
    own = call.context.project_id
    shared = [each for each in lease.shared_with if each == own]
    offered_to = own if lease.offered_to == own else None
    return {**body, "shared_with": shared, "offered_to": offered_to}
