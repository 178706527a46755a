"""Several workers carry out the same events of leases at once: each has its effect once.

On every database. The tests run on every database. In a service, only one process at a time has the
turn to carry out events. In these tests all processes act as if they had it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial

import sqlalchemy as sa

from innkeeper.domain.errors import ConcurrentUpdate, Overtaken
from innkeeper.domain.leases import (
    Demand,
    EventRequest,
    Lease,
    LeaseEventKind,
    LeaseRequest,
    LeaseStatus,
    ReservationRequest,
    ResourceTypeName,
    Window,
)
from innkeeper.domain.moves import Initiator
from innkeeper.domain.slices import Leasing
from innkeeper.store.queries.compute import agents
from innkeeper.store.queries.leases import holds, leases
from innkeeper.store.tables.leases import freepool_runs, lease_notifications
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.leases import audit, events, freepool
from innkeeper.systems.leases.context import LeaseContext
from tests.support.clouds import AGENT, DEFAULTS, Numbers, reported
from tests.support.stores import NOW

IDS = Numbers()
WORKERS, LEASES, ATTEMPTS = 4, 3, 50
HOUR = timedelta(hours=1)
SLOT = {"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 1}


def context(now: datetime) -> LeaseContext:
    # Notifications are written if there is a webhook.
    leasing = Leasing(lease_webhook_url="http://127.0.0.1:9/")
    return LeaseContext(60.0, Initiator("req-1", "project", "user"), now, leasing=leasing)


def furnish(tx: Tx) -> list[Lease]:
    """Make leases that begin in an hour, each of a whole host and of slots on another host."""
    agents.add(tx, AGENT)
    names = [f"host-{number}" for number in range(2 * LEASES)]
    hosts.report(tx, AGENT, [reported(each) for each in names], DEFAULTS, ids=IDS, now=NOW)
    for each in names:
        freepool.add(tx, each, {}, "freepool", NOW)
    made = []
    for whole, shared in zip(names[::2], names[1::2], strict=True):
        lease = leases.add(tx, request(), NOW)
        holds.add(tx, lease.reservations[0].id, {hosts.by_name(tx, whole).id: 1})
        holds.add(tx, lease.reservations[1].id, {hosts.by_name(tx, shared).id: 2})
        made.append(lease)
    return made


def request() -> LeaseRequest:
    window = Window(NOW + HOUR, NOW + 2 * HOUR)
    kinds = {LeaseEventKind.START: window.start, LeaseEventKind.END: window.end}
    return LeaseRequest(
        uuid=IDS.uuid(),
        name="lease",
        project_id="project",
        user_id="user",
        window=window,
        reservations=(
            ReservationRequest(IDS.uuid(), ResourceTypeName.HOST, Demand(1, 1)),
            ReservationRequest(IDS.uuid(), ResourceTypeName.SLOT, Demand(2, 2, SLOT)),
        ),
        events=tuple(EventRequest(IDS.uuid(), kind, due_at) for kind, due_at in kinds.items()),
    )


def carry_out(store: Store, made: Sequence[Lease], now: datetime) -> None:
    """Carry out what is due in all leases, as a worker that goes on after conflicts."""
    for act in (events.begin, events.carry_out, events.carry_out):
        for lease in made:
            assert any(has_acted(store, act, lease, now) for _ in range(ATTEMPTS))


def has_acted(store: Store, act: Callable[..., object], lease: Lease, now: datetime) -> bool:
    try:
        with store.write() as tx:
            act(tx, lease.uuid, context(now))
    except (Overtaken, ConcurrentUpdate):
        return False
    return True


def told(tx: Tx) -> Counter[str]:
    return Counter(tx.execute(sa.select(lease_notifications.c.event_type)).scalars())


def test_workers_at_once_start_and_end_each_lease_once(opened: Callable[[], Store]) -> None:
    stores = [opened() for _ in range(WORKERS)]
    with stores[0].write() as tx:
        made = furnish(tx)
    wanted = ((1, LeaseStatus.ACTIVE, "start_lease"), (2, LeaseStatus.ENDED, "end_lease"))
    for hours, status, event in wanted:
        now = NOW + hours * HOUR
        with ThreadPoolExecutor(WORKERS) as threads:
            list(threads.map(partial(carry_out, made=made, now=now), stores))
        with stores[0].read() as tx:
            found = [leases.by_uuid(tx, each.uuid) for each in made]
            assert [None if each is None else each.status for each in found] == [status] * LEASES
            assert told(tx)[f"lease.event.{event}"] == LEASES
            assert list(audit.findings(tx)) == []
            runs = tx.execute(
                sa.select(freepool_runs.c.ended_at).where(
                    freepool_runs.c.reservation_uuid.is_not(None)
                )
            ).scalars()
            assert [each is not None for each in runs] == [hours == 2] * (2 * LEASES)
            assert told(tx).total() == hours * LEASES
