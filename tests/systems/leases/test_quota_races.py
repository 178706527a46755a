"""Two processes cannot both use the last of a project's quota, on every database."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from innkeeper.domain.errors import QuotaExceeded
from innkeeper.domain.leases import (
    Demand,
    EventRequest,
    LeaseEventKind,
    LeaseRequest,
    ReservationRequest,
    ResourceTypeName,
    Window,
)
from innkeeper.domain.moves import Initiator
from innkeeper.domain.slices import Leasing
from innkeeper.store.queries.compute import agents
from innkeeper.store.queries.leases import holds, leases, quotas
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.leases import freepool, limits
from innkeeper.systems.leases.context import LeaseContext
from tests.support.clouds import AGENT, DEFAULTS, Numbers, reported
from tests.support.stores import NOW

IDS = Numbers()
WRITERS = 4
NAMES = ("a", "b", "c", "d")
CONTEXT = LeaseContext(
    60.0, Initiator("req-1", "project", "user"), NOW, leasing=Leasing(quota_reserved_hosts=2)
)
WINDOW = Window(NOW + timedelta(hours=1), NOW + timedelta(hours=2))


def furnish(tx: Tx) -> None:
    agents.add(tx, AGENT)
    hosts.report(tx, AGENT, [reported(each) for each in NAMES], DEFAULTS, ids=IDS, now=NOW)
    for each in NAMES:
        freepool.add(tx, each, {}, "freepool", NOW)


def request() -> LeaseRequest:
    kinds = {LeaseEventKind.START: WINDOW.start, LeaseEventKind.END: WINDOW.end}
    return LeaseRequest(
        uuid=IDS.uuid(),
        name="lease",
        project_id="project",
        user_id="user",
        window=WINDOW,
        reservations=(ReservationRequest(IDS.uuid(), ResourceTypeName.HOST, Demand(1, 1)),),
        events=tuple(EventRequest(IDS.uuid(), kind, due_at) for kind, due_at in kinds.items()),
    )


def reserve(tx: Tx, name: str) -> None:
    """Hold a host of its own, so that nothing but the quota is contended."""
    lease = leases.add(tx, request(), NOW)
    holds.add(tx, lease.reservations[0].id, {hosts.by_name(tx, name).id: 1})
    limits.demand(tx, lease, CONTEXT)


def test_writers_side_by_side_stay_within_the_quota(opened: Callable[[], Store]) -> None:
    stores = [opened() for _ in range(WRITERS)]
    with stores[0].write() as tx:
        furnish(tx)

    def attempt(store: Store, name: str) -> bool:
        try:
            with store.write() as tx:
                reserve(tx, name)
        except QuotaExceeded:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as threads:
        done = list(threads.map(attempt, stores, NAMES))
    assert sum(done) == 2
    with stores[0].read() as tx:
        assert sum(each.units for each in quotas.reserved(tx, "project", WINDOW)) == 2
        assert quotas.counts(tx, "project", NOW) == (2, 2)


def test_the_queries_see_what_is_not_over(opened: Callable[[], Store]) -> None:
    with opened().write() as tx:
        furnish(tx)
        reserve(tx, "a")
        assert quotas.of_project(tx, "project") == {}
        quotas.replace(tx, "project", {"leases": 3}, NOW)
        quotas.replace(tx, "project", {"reserved_hosts": 1}, NOW)
        assert quotas.of_project(tx, "project") == {"reserved_hosts": 1}
        quotas.delete(tx, "project")
        assert quotas.of_project(tx, "project") == {}
        (found,) = quotas.reserved(tx, "project", WINDOW)
        assert (found.window, found.units, found.unit_amounts) == (WINDOW, 1, None)
        later = Window(WINDOW.end, WINDOW.end + timedelta(hours=1))
        assert quotas.reserved(tx, "project", later) == []
        assert quotas.reserved(tx, "other", WINDOW) == []
        assert quotas.counts(tx, "project", WINDOW.start) == (1, 0)
        leases.change(tx, found.lease_id, NOW, ended_at=NOW)
        assert quotas.reserved(tx, "project", WINDOW) == []
        assert quotas.counts(tx, "project", NOW) == (0, 0)
