"""Drives a cloud with hosts for leases: acts as administrators and projects, and sets the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from innkeeper.domain.leases import (
    Demand,
    EventRequest,
    Lease,
    LeaseEventKind,
    LeaseRequest,
    ReservationRequest,
    ResourceTypeName,
    Window,
)
from innkeeper.domain.moves import Initiator
from innkeeper.store.queries.leases import holds
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.leases import audit, events, freepool, healing, leases, preemption
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.leases.healing import FailedHosts
from innkeeper.systems.leases.resource_types import slots
from innkeeper.systems.leases.resource_types.catalogue import BUILT_IN
from tests.support.clouds import UNLIMITED
from tests.support.moves import Movers

FAR = timedelta(days=365)
STEPS_MAX = 20


class LeaseOperator:
    """Acts on the freepool and leases of a cloud with a manual clock."""

    def __init__(self, movers: Movers) -> None:
        self.movers = movers
        self.cloud = movers.cloud
        self.leasing = movers.cloud.leasing
        self.types = BUILT_IN

    @property
    def now(self) -> datetime:
        """The present moment."""
        return self.movers.now

    def moment(self, seconds: float) -> datetime:
        """Return the moment so many seconds from now."""
        return self.now + timedelta(seconds=seconds)

    def context(self) -> LeaseContext:
        """Return the context of an action."""
        return LeaseContext(
            UNLIMITED.service_down_time_s,
            Initiator("req-1", "project", "user"),
            self.now,
            self.cloud.ids.seed(),
            self.leasing,
            types=self.types,
        )

    # -- administrators --------------------------------------------------------------------

    def keep(self, *names: str) -> None:
        """Add hosts to the freepool."""
        for name in names:
            self.cloud.write(
                partial(freepool.add, name=name, capabilities={}, aggregate="pool", now=self.now)
            )

    def let_go(self, name: str) -> None:
        """Remove a host from the freepool."""

        def act(tx: Tx) -> None:
            freepool.remove(tx, hosts.by_name(tx, name).id, self.now)

        self.cloud.write(act)

    def declare(
        self, name: str, *, is_down: bool | None = None, is_disabled: bool | None = None
    ) -> None:
        """Force a host down or up, and disable or enable it."""
        wanted = ServiceChange(is_forced_down=is_down, is_disabled=is_disabled)
        self.cloud.write(
            lambda tx: hosts.change_service(tx, hosts.by_name(tx, name), wanted, self.now)
        )

    def failed_hosts(self) -> Mapping[str, frozenset[int]]:
        """Return the leases to heal, each with its failed hosts."""
        context = self.context()
        found: FailedHosts = self.cloud.read(lambda tx: healing.look(tx, context))
        return found.leases

    def heal(self) -> int:
        """Heal all leases that need it. Return how many were changed."""
        return sum(self.heal_one(uuid, failed) for uuid, failed in self.failed_hosts().items())

    def heal_one(self, uuid: str, failed: frozenset[int]) -> bool:
        """Heal a lease. Return whether it was changed."""
        act = partial(healing.heal, uuid=uuid, failed=failed, context=self.context())
        done: bool = self.cloud.decide(act, self.now)
        return done

    def swap(self, lease: Lease, name: str) -> None:
        """Replace a host in a lease by another one."""
        host_id, context = self.cloud.host(name).id, self.context()
        act = partial(healing.swap, uuid=lease.uuid, host_id=host_id, context=context)
        self.cloud.decide(act, self.now)

    # -- projects --------------------------------------------------------------------------

    def lease(
        self,
        *wanted: tuple[int, int],
        start: float = 0.0,
        end: float | None = None,
        project: str = "project",
        warned: float | None = None,
        marked: str | None = None,
    ) -> Lease:
        """Create a lease that starts and ends so many seconds from now.

        The warning is due after ``warned`` seconds, and so is an event of the type ``marked``.
        """
        until = self.now + (FAR if end is None else timedelta(seconds=end))
        return self.make(
            Window(self.now + timedelta(seconds=start), until),
            [Demand(*each) for each in wanted or [(1, 1)]],
            project,
            self._messages(warned, marked),
        )

    def _messages(self, warned: float | None, marked: str | None) -> tuple[EventRequest, ...]:
        if warned is None:
            return ()
        due_at, uuid = self.now + timedelta(seconds=warned), self.cloud.ids.uuid
        warning = EventRequest(uuid(), LeaseEventKind.BEFORE_END, due_at)
        if marked is None:
            return (warning,)
        return (warning, EventRequest(uuid(), LeaseEventKind.USER, due_at, marked))

    def make(
        self,
        window: Window,
        demands: Sequence[Demand],
        project: str = "project",
        messages: Sequence[EventRequest] = (),
    ) -> Lease:
        """Create a lease in a window."""
        uuid = self.cloud.ids.uuid
        request = LeaseRequest(
            uuid=uuid(),
            name="lease",
            project_id=project,
            user_id="user",
            window=window,
            reservations=tuple(
                ReservationRequest(
                    uuid(),
                    ResourceTypeName.HOST if each.is_whole else ResourceTypeName.SLOT,
                    each,
                    _parameters(each),
                )
                for each in demands
            ),
            events=(
                EventRequest(uuid(), LeaseEventKind.START, window.start),
                EventRequest(uuid(), LeaseEventKind.END, window.end),
                *messages,
            ),
        )
        context = self.context()

        def work(tx: Tx, decision: DecisionContext) -> Lease:
            return leases.create(tx, decision, request, context)

        made: Lease = self.cloud.decide(work, self.now)
        return made

    def delete(self, lease: Lease) -> None:
        """End a lease."""
        context = self.context()
        self.cloud.write(lambda tx: leases.delete(tx, leases.get(tx, lease.uuid), context))

    # -- time ------------------------------------------------------------------------------

    def turn(self) -> None:
        """Run the service's periodic work, with separate steps for each lease."""
        self.preempt()
        for uuid in self.cloud.write(lambda tx: events.due(tx, self.now)):
            self.carry_out(uuid)

    def preempt(self) -> int:
        """Warn and delete preemptible servers. Return how much was done."""
        done = 0
        for _ in range(STEPS_MAX):
            some: int = self.cloud.write(lambda tx: preemption.work(tx, self.context()))
            if not some:
                break
            done += some
        return done

    def carry_out(self, uuid: str) -> None:
        """Carry out one lease's due event."""
        for _ in range(STEPS_MAX):
            if not self.cloud.write(partial(events.carry_out, uuid=uuid, context=self.context())):
                return

    def wait(self, seconds: float) -> None:
        """Advance the clock, and then do the periodic work."""
        self.movers.wait(seconds)
        self.turn()

    # -- looking ---------------------------------------------------------------------------

    def status(self, lease: Lease) -> str:
        """Return the present status of a lease."""
        found: Lease = self.cloud.read(lambda tx: leases.get(tx, lease.uuid))
        return found.status

    def held(self, lease: Lease) -> set[str]:
        """Return the hosts that a lease holds, by name."""

        def look(tx: Tx) -> set[str]:
            held = holds.of_reservations(tx, [each.id for each in lease.reservations])
            rows = {each.host_id for some in held.values() for each in some}
            return {freepool.member(tx, row).name for row in rows}

        found: set[str] = self.cloud.read(look)
        return found

    def units(self, lease: Lease) -> dict[str, int]:
        """Return the units of a lease's first reservation, by the name of the host."""

        def look(tx: Tx) -> dict[str, int]:
            held = holds.of_reservation(tx, lease.reservations[0].id)
            return {freepool.member(tx, each.host_id).name: each.units for each in held}

        found: dict[str, int] = self.cloud.read(look)
        return found

    def said(self, *names: str) -> Sequence[tuple[str | None, str | None]]:
        """Return the dedications in the rows of these hosts."""
        found = [self.cloud.host(name) for name in names]
        return [(each.dedication, each.dedicated_to) for each in found]

    def broken(self) -> list[str]:
        """Return the findings of this room's audit."""
        found: list[Any] = self.cloud.read(lambda tx: list(audit.findings(tx)))
        return [str(each) for each in found]


def _parameters(demand: Demand) -> dict[str, Any]:
    """Return the parameters of a request that makes this demand."""
    amounts = demand.unit_amounts or {}
    return {
        "resource_properties": next(iter(demand.requirements), ""),
        **{name: amounts.get(kind, 0) for name, kind in slots.SIZES.items()},
    }
