"""A process is killed at every few statements of the start, the healing and the end of a lease.

``LEASE_KILLS_STRIDE`` is the number of statements from one kill to the next. Another process
completes the work. After each kill and at the end, the audit is clean, and hosts, slots and servers
are what the lease says. Each event is notified once.
"""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from innkeeper.domain.compute import Status
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import Demand, Lease, LeaseStatus, Window
from innkeeper.domain.moves import ActionName
from innkeeper.domain.preemption import EXTRA_SPEC, LEAD_S
from innkeeper.domain.slices import Leasing
from innkeeper.engine.leases import healing as lease_healing
from innkeeper.engine.leases.events import TURN_S, WAIT_MAX_S
from innkeeper.store.queries.compute import server_actions
from innkeeper.store.queries.leases import holds, preemptions
from innkeeper.store.tables.leases import lease_notifications
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import freepool, leases
from tests.support.clouds import URL_FILE, reported
from tests.support.databases import MIGRATED
from tests.support.lease_operator import LeaseOperator
from tests.support.lease_victims import KILLED, NEVER, TASKS, Victims
from tests.support.moves import Movers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

NAMES = ("a1", "a2", "a3", "b1", "b2", "b3")
SLOT = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}
SLOTS = 3
MINUTE_S, HOUR = 60.0, timedelta(hours=1)
STARTED_AND_ENDED = {"lease.event.start_lease": 1, "lease.event.end_lease": 1}
STRIDE = int(os.environ.get("LEASE_KILLS_STRIDE", "17"))
"""Processes are killed after every so many statements. With 1, after each statement."""


class Killing:
    """A lease that starts and ends, again and again, while processes die."""

    def __init__(self, folder: Path, victims: Victims) -> None:
        self.folder, self.victims = folder, victims
        leasing = Leasing(allow_preemptible_servers=True)
        self.movers = Movers(folder, *map(reported, NAMES), leasing=leasing)
        self.movers.cloud.add_flavor("cheap", extra_specs={EXTRA_SPEC: "true"})
        self.operator = LeaseOperator(self.movers)
        self.operator.keep(*NAMES)

    def lease(self, start: timedelta = HOUR, length: timedelta = HOUR, slots: int = SLOTS) -> Lease:
        """Create a lease of one whole host and of slots."""
        begin = self.operator.now + start
        demands = [Demand(1, 1), *([Demand(slots, slots, SLOT)] if slots else [])]
        return self.operator.make(Window(begin, begin + length), demands)

    def go_on(self, statements: int, wait_s: float, tasks: Sequence[str] = TASKS) -> bool:
        """Let time pass and a process die; another one then goes on. Return whether it died."""
        self.movers.wait(wait_s)
        status = self.victims.run(self.folder, self.operator.now, statements, tasks)
        assert status in (0, KILLED)
        self.judge()
        if status == KILLED:
            self.movers.wait(max(TURN_S + WAIT_MAX_S, lease_healing.PERIOD_S))
            assert self.victims.run(self.folder, self.operator.now, tasks=tasks) == 0
            self.judge()
        return status == KILLED

    def told(self, lease: Lease) -> Counter[str]:
        """Count the notifications about a lease, by type."""
        query = sa.select(lease_notifications.c.payload)
        rows = self.movers.cloud.read(lambda tx: tx.execute(query).scalars().all())
        payloads = [json.loads(each) for each in rows]
        return Counter(e["event_type"] for e in payloads if e["lease"]["id"] == lease.uuid)

    def units(self, lease: Lease) -> list[dict[str, int]]:
        """Return each reservation's units by host; hosts that only have to be emptied have 0."""

        def look(tx: Tx) -> list[dict[str, int]]:
            held = holds.of_reservations(tx, [each.id for each in lease.reservations])
            return [
                {freepool.member(tx, e.host_id).name: e.units for e in held[each.id]}
                for each in lease.reservations
            ]

        found: list[dict[str, int]] = self.movers.cloud.read(look)
        return found

    def found(self, lease: Lease) -> Lease:
        """Return a lease as it is now."""
        now: Lease = self.movers.cloud.read(lambda tx: leases.get(tx, lease.uuid))
        return now

    def judge(self) -> None:
        """Check the invariants of all rooms."""
        self.movers.cloud.reread()
        self.movers.judge()
        assert self.operator.broken() == []

    def boot(self, lease: Lease) -> list[ServerId]:
        """Boot a server on the whole host, and one into each slot."""
        whole, slots = (each.uuid for each in lease.reservations)
        made = [self.movers.boot(None, hints={"reservation": whole})]
        made += [self.movers.boot(None, flavor_id=slots) for _ in range(SLOTS)]
        request = self.movers.cloud.request(now=self.operator.now, flavor_id=slots)
        (fourth,) = self.movers.cloud.boot(request)
        assert "No valid host" in str(getattr(fourth, "fault", ""))
        return made

    def once(self, statements: int) -> bool:
        """Run through the life of a lease; return whether any process died."""
        lease, operator = self.lease(), self.operator
        deaths = [self.go_on(statements, 60 * MINUTE_S)]
        assert operator.status(lease) == LeaseStatus.ACTIVE
        assert sorted(str(said) for said, _ in operator.said(*NAMES)).count(Dedication.LEASED) == 1
        servers = self.boot(lease)
        deaths.append(self.go_on(statements, 60 * MINUTE_S))
        assert operator.status(lease) == LeaseStatus.ENDING
        orders = [each.server_uuid for each in self.movers.waiting("destroy")]
        assert sorted(orders) == sorted(servers), "each server is destroyed once"
        self.movers.finish()
        deaths.append(self.go_on(statements, MINUTE_S))
        assert operator.status(lease) == LeaseStatus.ENDED
        assert {self.movers.server(each).status for each in servers} == {Status.DELETED}
        assert operator.held(lease) == set()
        assert operator.said(*NAMES) == [(Dedication.FREEPOOL, None)] * len(NAMES)
        assert self.told(lease) == STARTED_AND_ENDED
        operator.delete(lease)
        self.judge()
        return any(deaths)

    def heal_once(self, statements: int) -> bool:
        """Let the hosts of two leases fail and come back; return whether any process died."""
        operator, tasks = self.operator, (lease_healing.TASK,)
        lease = self.lease(timedelta(), 5 * HOUR)
        self.go_on(NEVER, MINUTE_S)
        later = self.lease(HOUR / 2, HOUR, slots=0)
        inside = self.movers.boot(None, hints={"reservation": lease.reservations[0].uuid})
        failed = operator.held(lease) | operator.held(later)
        for each in sorted(failed):
            operator.declare(each, is_down=True)
        deaths = [self.go_on(statements, MINUTE_S, tasks)]
        assert not operator.held(later) & failed
        home = self.movers.server(inside).host
        whole, slots = self.units(lease)
        assert home in failed
        assert whole.pop(str(home)) == 0, "its server is still there"
        assert (sum(whole.values()), sum(slots.values())) == (1, SLOTS)
        assert not (whole.keys() | slots.keys()) & failed
        assert [each.is_degraded for each in map(self.found, (lease, later))] == [True, False]
        assert [each.is_changed for each in self.found(lease).reservations] == [True, True]
        for each in sorted(failed):
            operator.declare(each, is_down=False)
        servers = self.boot(lease)
        assert self.movers.server(servers[0]).host in whole
        operator.delete(later)
        deaths.append(self.go_on(statements, 61 * MINUTE_S, tasks))
        assert not self.found(lease).is_degraded
        self.end(lease)
        told = {"lease.degraded": 1, "lease.healed": 1, **STARTED_AND_ENDED}
        assert self.told(lease) == told
        assert {self.movers.server(each).status for each in (inside, *servers)} == {Status.DELETED}
        operator.delete(lease)
        self.judge()
        return any(deaths)

    def end(self, lease: Lease) -> None:
        """Let a lease end without killing processes."""
        self.go_on(NEVER, 5 * HOUR.total_seconds())
        self.movers.finish()
        self.go_on(NEVER, MINUTE_S)
        assert self.operator.status(lease) == LeaseStatus.ENDED
        assert self.operator.said(*NAMES) == [(Dedication.FREEPOOL, None)] * len(NAMES)

    def preempt(self, statements: int) -> bool:
        """Let a lease take the hosts of preemptible servers; return whether any process died."""
        lease, operator = self.lease(), self.operator
        held = sorted(operator.held(lease))
        servers = [self.movers.boot(each, flavor_id="cheap") for each in held]
        grace_s = operator.leasing.preemption_grace_s
        deaths = [self.go_on(statements, HOUR.total_seconds() - LEAD_S - grace_s)]
        assert [self.warnings(each) for each in servers] == [1] * len(servers)
        deaths.append(self.go_on(statements, grace_s))
        orders = [each.server_uuid for each in self.movers.waiting("destroy")]
        assert sorted(orders) == sorted(servers), "each server is destroyed once"
        self.movers.finish()
        deaths.append(self.go_on(statements, LEAD_S))
        assert operator.status(lease) == LeaseStatus.ACTIVE
        assert [self.warnings(each) for each in servers] == [1] * len(servers)
        assert self.movers.cloud.read(preemptions.warned) == {}
        operator.delete(lease)
        operator.turn()
        assert operator.said(*NAMES) == [(Dedication.FREEPOOL, None)] * len(NAMES)
        return any(deaths)

    def warnings(self, server: ServerId) -> int:
        """Return how often a server was warned."""
        found = self.movers.cloud.read(lambda tx: server_actions.of_server(tx, server))
        return [each.action for each in found].count(ActionName.PREEMPTION_WARNING)


@pytest.fixture(params=["sqlite", "postgresql"])
def killing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Killing]:
    """A cloud on one kind of database."""
    victims, copies = Victims(), tmp_path / "copies"
    copies.mkdir()
    with MIGRATED[request.param](copies) as url:
        (tmp_path / URL_FILE).write_text(url)
        made = Killing(tmp_path, victims)
        yield made
        made.movers.close()
    victims.stop()


def test_another_process_goes_on_after_any_statement(killing: Killing) -> None:
    assert deaths(killing.once) > 1


def test_another_process_goes_on_to_preempt_servers(killing: Killing) -> None:
    assert deaths(killing.preempt) > 1


def test_another_process_goes_on_with_the_healing(killing: Killing) -> None:
    # On this database, each lease takes longer, and has more statements.
    assert deaths(killing.heal_once, 2 * STRIDE) > 1


def deaths(once: Callable[[int], bool], stride: int = STRIDE) -> int:
    """Let processes die after more and more statements, until none dies. Return how many died."""
    found = 0
    for statements in itertools.count(1, stride):
        if not once(statements):
            break
        found += 1
    return found
