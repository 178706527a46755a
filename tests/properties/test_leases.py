"""Whatever the order of events, a host belongs to at most one pcloud or lease at a time.

Dice choose the steps. After each step, the tables are checked by this test's own rules. Each
refused step has a message. Booted servers are on hosts that the table of cases allows. A request
that could get a host got one.
"""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.domain.errors import Refusal
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import Lease, LeaseStatus, Window
from innkeeper.store.tables import compute, leases, pclouds
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import audit as pcloud_audit
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator

HOSTS = ("a1", "a2", "b1", "b2", "b3")
PROJECTS = ("project", "stranger")
STEPS = 40
HOUR_S = 3600.0
Place = tuple[str | None, str | None]


class Steps:
    """One cloud, and what may happen in it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - no secret
        self.movers = Movers(
            folder, *(reported(each, vcpus=50, memory_mb=99_999) for each in HOSTS)
        )
        self.operator, self.leasing = PcloudOperator(self.movers), LeaseOperator(self.movers)
        self.cloud = self.movers.cloud
        self.operator.define("gold", 0)
        self.pclouds = {each: self.operator.create(each, name="p") for each in PROJECTS}
        self.leasing.keep(*HOSTS[2:4])
        self.leases: list[Lease] = []
        self.servers: list[ServerId] = []
        self.names = itertools.count()

    def step(self) -> None:
        """Do one step, and check the result."""
        ways: tuple[Callable[[], Any], ...] = (
            self.pool,
            self.unpool,
            self.take,
            self.keep,
            self.keep,
            self.let_go,
            self.lease,
            self.lease,
            self.end,
            self.boot,
            self.boot,
            self.boot,
            self.delete,
            self.move,
            self.tell,
            self.wait,
        )
        with suppress(Refusal):
            self.dice.choice(ways)()
        self.judge()

    # -- steps -----------------------------------------------------------------------------

    def host(self) -> str:
        return self.dice.choice(HOSTS)

    def pool(self) -> None:
        name = self.host()
        self.operator.switch_service(name, ServiceChange(is_disabled=True))
        try:
            self.operator.pool("gold", name, by_aggregate=self.dice.random() < 0.5)
        finally:
            self.operator.switch_service(name, ServiceChange(is_disabled=False))

    def unpool(self) -> None:
        name = self.host()
        self.operator.unpool("gold", name, by_aggregate=False)
        self.operator.switch_service(name, ServiceChange(is_disabled=False))

    def take(self) -> None:
        name = f"n{next(self.names)}"
        self.operator.allocate(
            self.dice.choice([*self.pclouds.values()]), HostRequest(name, "gold", None, True)
        )

    def keep(self) -> None:
        self.leasing.keep(self.host())

    def let_go(self) -> None:
        self.leasing.let_go(self.host())

    def lease(self) -> None:
        start = self.dice.choice((0, 0, 0, 1, 2)) * HOUR_S
        parts = self.dice.choice((1, 1, 1, 2))
        wanted = [(least, least + self.dice.randrange(2)) for least in (1, 1)[:parts]]
        end = start + self.dice.randrange(1, 4) * HOUR_S
        project = self.dice.choice(PROJECTS)
        self.leases.append(self.leasing.lease(*wanted, start=start, end=end, project=project))

    def end(self) -> None:
        if self.leases:
            self.leasing.delete(self.leases.pop(self.dice.randrange(len(self.leases))))

    def boot(self) -> None:
        project = self.dice.choice(PROJECTS)
        hints = self.dice.choice(
            (self.no_hints, self.pcloud_hints, self.lease_hints, self.lease_hints)
        )()
        forced = self.host() if self.dice.random() < 0.1 else None
        expected = self.allowed(hints, project, forced)
        request = self.cloud.request(
            now=self.movers.now, hints=hints, project_id=project, forced_host=forced
        )
        (booted,) = self.cloud.boot(request)
        (server,) = booted.server_ids  # type: ignore[union-attr]
        home = self.movers.server(server).host
        assert home in expected if expected else home is None, (hints, project, expected, home)
        self.servers.append(server)
        if home is not None and self.dice.random() < 0.8:
            self.movers.tell("build", server, "No." if self.dice.random() < 0.2 else None)

    def no_hints(self) -> dict[str, str]:
        return {}

    def pcloud_hints(self) -> dict[str, str]:
        return {"pcloud": self.dice.choice([*self.pclouds.values(), *self.reservations()])}

    def lease_hints(self) -> dict[str, str]:
        running = [to for said, to in self.places().values() if said == Dedication.LEASED]
        others = [*self.reservations(), self.pclouds["project"]]
        wanted = running if running and self.dice.random() < 0.8 else others
        return {"reservation": str(self.dice.choice(wanted))}

    def reservations(self) -> list[str]:
        return [part.uuid for each in self.leases for part in each.reservations]

    def delete(self) -> None:
        if self.servers:
            self.movers.delete(self.servers.pop(self.dice.randrange(len(self.servers))))

    def move(self) -> None:
        if self.servers:
            server, host = self.dice.choice(self.servers), self.dice.choice((None, *HOSTS))
            self.movers.migrate_live(server, host=host, is_forced=host is not None)

    def tell(self) -> None:
        for order in self.movers.waiting():
            self.movers.settle(order)

    def wait(self) -> None:
        self.leasing.wait(self.dice.choice((0.0, HOUR_S, HOUR_S)))

    # -- judgement -------------------------------------------------------------------------

    def rows(self, table: sa.Table) -> list[Mapping[str, Any]]:
        def look(tx: Tx) -> list[Mapping[str, Any]]:
            return [dict(row) for row in tx.execute(sa.select(table)).mappings()]

        found: list[Mapping[str, Any]] = self.cloud.read(look)
        return found

    def owners(self) -> dict[str, str]:
        """The project of each lease, by the ids of its reservations."""
        there = {each["id"]: each["project_id"] for each in self.rows(leases.leases)}
        parts = self.rows(leases.reservations)
        return {each["uuid"]: there[each["lease_id"]] for each in parts}

    def places(self) -> dict[str, Place]:
        """The dedication in the row of each enabled host."""
        return {
            each["name"]: (each["dedication"], each["dedicated_to"])
            for each in self.rows(compute.hosts)
            if not each["is_disabled"]
        }

    def allowed(self, hints: Mapping[str, str], project: str, forced: str | None) -> set[str]:
        """The hosts where a server with these hints may be."""
        if "pcloud" in hints:
            mine = hints["pcloud"] == self.pclouds[project]
            wanted: Place = (Dedication.OPEN, hints["pcloud"] if mine else "nobody's")
        elif "reservation" in hints:
            is_mine = self.owners().get(hints["reservation"]) == project
            wanted = (Dedication.LEASED, hints["reservation"] if is_mine else "nobody's")
        else:
            wanted = (None, None)
        names = {name for name, said in self.places().items() if said == wanted}
        return names if forced is None else names & {forced}

    def judge(self) -> None:
        """Check what must always be true."""
        pooled = {each["host_id"] for each in self.rows(pclouds.pool_hosts)}
        kept = {each["host_id"] for each in self.rows(leases.freepool_hosts)}
        assert pooled.isdisjoint(kept)
        self.judge_holds()
        hosts = {each["name"]: each for each in self.rows(compute.hosts)}
        owners = self.owners()
        for each in self.rows(compute.servers):
            if each["deleted_at"] is None and each["host"] is not None:
                host = hosts[each["host"]]
                named = each["hints"].get("pcloud") or each["hints"].get("reservation")
                assert host["dedicated_to"] == named, (host["name"], each["hints"])
                if host["dedication"] in (Dedication.LEASED, Dedication.ENDED):
                    assert owners[named] == each["project_id"]
        assert self.leasing.broken() == []
        found = self.cloud.read(lambda tx: [str(e) for e in pcloud_audit.findings(tx)])
        assert found == []
        self.movers.judge()

    def judge_holds(self) -> None:
        """Check that no host is in two leases at once, and active leases have what was promised."""
        there = {each["id"]: each for each in self.rows(leases.leases) if each["ended_at"] is None}
        parts = {each["id"]: each for each in self.rows(leases.reservations)}
        spans: dict[int, list[Window]] = {}
        counts: dict[int, int] = {}
        for each in self.rows(leases.holds):
            lease = there.get(parts[each["reservation_id"]]["lease_id"])
            if lease is not None:
                window = Window(lease["start_at"], lease["end_at"])
                spans.setdefault(each["host_id"], []).append(window)
                counts[each["reservation_id"]] = counts.get(each["reservation_id"], 0) + 1
        for mine in spans.values():
            mine.sort(key=lambda window: window.start)
            for first, second in itertools.pairwise(mine):
                assert first.end <= second.start
        for row, part in parts.items():
            if part["lease_id"] in there:
                assert part["hosts_min"] <= counts.get(row, 0) <= part["hosts_max"]

    def come_to_rest(self) -> None:
        """When all orders are reported and all leases over, the freepool has all its hosts."""
        for _ in range(4):
            self.tell()
            self.leasing.wait(9 * HOUR_S)
        self.judge()
        statuses = {self.leasing.status(each) for each in self.leases}
        assert statuses <= {LeaseStatus.ENDED}
        assert self.rows(leases.holds) == []
        assert {Dedication.LEASED, Dedication.ENDED}.isdisjoint(
            each["dedication"] for each in self.rows(compute.hosts)
        )


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_no_host_is_two_sides(seed: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="innkeeper-leases-"))
    try:
        steps = Steps(folder, seed)
        for _ in range(STEPS):
            steps.step()
        steps.come_to_rest()
        steps.movers.close()
    finally:
        shutil.rmtree(folder)
