"""A cloud with hosts for leases: what administrators, projects and time do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from innkeeper.domain.leases import HostReservationRequest, Lease, LeaseRequest, Window
from innkeeper.domain.moves import Initiator
from innkeeper.store.queries.leases import holds
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.leases import audit, events, freepool, leases
from innkeeper.systems.leases.context import LeaseContext
from tests.support.clouds import UNLIMITED
from tests.support.moves import Movers

FAR = timedelta(days=365)
STEPS_MAX = 20


class LeaseOperator:
    """Acts on the freepool and leases of a cloud with a manual clock."""

    def __init__(self, movers: Movers) -> None:
        self.movers = movers
        self.cloud = movers.cloud

    @property
    def now(self) -> datetime:
        """The present moment."""
        return self.movers.now

    def context(self) -> LeaseContext:
        """The context of an action."""
        return LeaseContext(
            UNLIMITED.service_down_time_s,
            Initiator("req-1", "project", "user"),
            self.now,
            self.cloud.ids.seed(),
        )

    # -- administrators --------------------------------------------------------------------

    def keep(self, *names: str) -> None:
        """Add hosts to the freepool."""
        for name in names:
            self.cloud.write(partial(freepool.add, name=name, now=self.now))

    def let_go(self, name: str) -> None:
        """Remove a host from the freepool."""

        def act(tx: Tx) -> None:
            freepool.remove(tx, hosts.by_name(tx, name).id, self.now)

        self.cloud.write(act)

    # -- projects --------------------------------------------------------------------------

    def lease(
        self,
        *wanted: tuple[int, int],
        start: float = 0.0,
        end: float | None = None,
        project: str = "project",
    ) -> Lease:
        """Create a lease that starts and ends so many seconds from now."""
        uuid = self.cloud.ids.uuid
        until = self.now + (FAR if end is None else timedelta(seconds=end))
        request_body = LeaseRequest(
            uuid=uuid(),
            name="lease",
            project_id=project,
            user_id="user",
            window=Window(self.now + timedelta(seconds=start), until),
            reservations=tuple(
                HostReservationRequest(uuid(), *each) for each in wanted or [(1, 1)]
            ),
            start_uuid=uuid(),
            end_uuid=uuid(),
        )
        context = self.context()
        made: Lease = self.cloud.write(lambda tx: leases.create(tx, request_body, context))
        return made

    def delete(self, lease: Lease) -> None:
        """End a lease."""
        context = self.context()
        self.cloud.write(lambda tx: leases.delete(tx, leases.get(tx, lease.uuid), context))

    # -- time ------------------------------------------------------------------------------

    def turn(self) -> None:
        """The service's periodic work, each lease in its own steps."""
        for uuid in self.cloud.write(lambda tx: events.due(tx, self.now)):
            self.carry_out(uuid)

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
        """The present status of a lease."""
        found: Lease = self.cloud.read(lambda tx: leases.get(tx, lease.uuid))
        return found.status

    def held(self, lease: Lease) -> set[str]:
        """The hosts that a lease holds, by name."""

        def look(tx: Tx) -> set[str]:
            rows = [row for _, row in holds.of_lease(tx, lease.id)]
            return {freepool.member(tx, row).name for row in rows}

        found: set[str] = self.cloud.read(look)
        return found

    def said(self, *names: str) -> Sequence[tuple[str | None, str | None]]:
        """The dedications in hosts' rows."""
        found = [self.cloud.host(name) for name in names]
        return [(each.dedication, each.dedicated_to) for each in found]

    def broken(self) -> list[str]:
        """The findings of this room's audit."""
        found: list[Any] = self.cloud.read(lambda tx: list(audit.findings(tx)))
        return [str(each) for each in found]
