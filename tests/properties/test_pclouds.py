"""Whole hosts keep their owners, whatever administrators, owners, users and agents do.

After every step the database is read again and checked by independent rules: owners, residents,
billing, capacity, and what the API shows. A rejected step has changed nothing. Servers are only on
hosts whose dedication allows them. A request that could get a host got one. Entries of plans are
checked at the time they are used.

Hypothesis chooses the actor and a seed; a random generator chooses the step. Hypothesis would try
few of thirty kinds of steps with four arguments each.

``PCLOUDS_EXAMPLES`` is the number of clouds to try.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from innkeeper.domain.ids import ServerId
from innkeeper.systems.compute.moves import dedicated_hosts, resizing, shelving
from innkeeper.systems.pclouds import pclouds
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_steps import FLAVORS, GONE, HOSTS, NAMES, Steps
from tests.support.plan_checks import Planner

EXAMPLES = int(os.environ.get("PCLOUDS_EXAMPLES", "10"))
EXAMPLE_MAX_S = 60
"""An example takes a second or two; on a busy machine, many times that."""
SERVERS_MAX = 8
ENTRIES_MAX = 6
"""Older entries of plans are dropped, so that most entries were made for the present hosts."""
SHORT_S, LONG_S = 61.0, 601.0
"""The first is longer than an agent may be silent, the second longer than an order may take."""
EVACUATE = 3
"""The number of the kind of move that leaves a host that is down."""


class Guests(Steps):
    """Adds the steps of tenants, of their servers' agents, and of the service itself."""

    def __init__(self, movers: Movers, seed: int) -> None:
        super().__init__(movers, seed)
        self.planner = Planner(self.checks)

    # -- tenants ---------------------------------------------------------------------------

    def rent(self) -> None:
        if len(self.seen.servers) >= SERVERS_MAX:
            self.delete()
            return
        self.do_one({self.boot: 4, self.delete: 1})

    def boot(self) -> None:
        named, hints = self.host_request()
        if len(self.seen.servers) < SERVERS_MAX:
            forced = self.dice.choice(HOSTS) if self.rarely() else None
            made = self.checks.boot(self.guest(named), hints, forced)
            if self.often():
                self.lose(made)
            self.settle_mostly()
            if self.seen.servers[made]["status"] == "ERROR" and not self.rarely():
                self.attempt(lambda: self.movers.delete(made))

    def host_request(self) -> tuple[Any, dict[str, Any]]:
        """Return the pcloud or pclouds that a request names, if any, and its hints."""
        there: list[str] = [each["uuid"] for each in self.seen.pclouds.values()]
        uuid = self.member()[0]
        named = self.dice.choice((None, None, None, GONE, there or GONE, *[uuid] * 5))
        hints: dict[str, Any] = {} if named is None else {"pcloud": named}
        if hints and self.rarely():
            hints["pcloud_host"] = self.dice.choice(NAMES)
        return named, hints

    def plan(self) -> None:
        """Plan servers, and boot an entry of this or an earlier plan, perhaps a second time."""
        named, hints = self.host_request()
        self.planner.plan(self.guest(named), hints)
        kept = self.planner.kept
        del kept[:-ENTRIES_MAX]
        if len(self.seen.servers) >= SERVERS_MAX:
            self.delete()
        elif kept:
            entry = self.dice.choice(kept)
            if self.rarely():
                self.take_from(entry.planned.destination.host, entry.project_id)
            self.planner.carry_out(entry)
            self.settle_mostly()

    def lose(self, uuid: ServerId) -> None:
        """Have a build fail after the host of its retry was dedicated to someone else."""
        others = self.seen.alternates.get(uuid, ())
        if others:
            self.take_from(self.dice.choice(others), self.seen.servers[uuid]["project_id"])
        for order in self.movers.waiting("build"):
            if order.server_uuid == uuid:
                self.checks.fail(order)

    def take_from(self, machine: str, project: str) -> None:
        """Take a host away from a project, in one of several ways."""
        host_id = self.seen.by_name(machine)["id"]
        pcloud, member = self.seen.pcloud_of(host_id), self.seen.members.get(host_id)
        if pcloud is None or member is None:
            self.pool(machine, self.dice.choice(FLAVORS))
            return
        uuid, name = pcloud["uuid"], member["name"]
        ways: tuple[Callable[[], Any], ...] = (
            lambda: self.own_act(uuid, pclouds.drop, project),
            lambda: self.attempt(lambda: self.operator.switch(uuid, name, is_enabled=False)),
            lambda: self.attempt(
                lambda: self.operator.maintain(self.flavor_of(machine), machine, "Fans.")
            ),
        )
        self.dice.choice(ways)()

    def delete(self) -> None:
        uuid = self.server()
        if uuid is not None:
            self.attempt(lambda: self.movers.delete(uuid))
            self.settle_mostly()

    def travel(self) -> None:
        uuid = self.shelved() or self.server()
        if uuid is None:
            self.boot()
        elif self.seen.servers[uuid]["status"] == "VERIFY_RESIZE":
            work = self.dice.choice((resizing.confirm, resizing.revert))
            self.attempt(lambda: self.movers.act(work, uuid))
            self.settle_mostly()
        else:
            self.move(uuid)

    def move(self, uuid: ServerId) -> None:
        movers, host = self.movers, self.dice.choice((None, None, *HOSTS))
        force = {"is_forced": True} if self.often() and host is not None else {}
        ways: tuple[Callable[[], Any], ...] = (
            lambda: movers.resize(uuid, "big"),
            lambda: movers.migrate(uuid, host=host),
            lambda: movers.migrate_live(uuid, host=host, **force),
            lambda: movers.evacuate(uuid, host=host, **force),
            lambda: movers.act(shelving.shelve, uuid, offload_time_s=0),
        )
        number = self.dice.randrange(len(ways))
        if self.seen.servers[uuid]["status"].startswith("SHELVED"):
            if self.often():
                self.choose(uuid)
            self.checks.move(uuid, lambda: movers.unshelve(uuid, host=host))
        else:
            home = self.seen.servers[uuid]["host"]
            if number == EVACUATE and home is not None:
                self.force_down(home, is_down=True)
            self.checks.move(uuid, ways[number])
        self.settle_mostly()

    def shelved(self) -> ServerId | None:
        """Now and then, one of the servers that are shelved and on no host."""
        found = [
            uuid
            for uuid, each in self.seen.servers.items()
            if each["status"] == "SHELVED_OFFLOADED" and each["host"] is None
        ]
        return ServerId(self.dice.choice(found)) if found and self.often() else None

    def choose(self, uuid: ServerId) -> None:
        """Have a shelved server return to another pcloud, or to ordinary hosts."""
        pcloud = None if self.often() else self.pcloud()
        server, wanted = self.seen.servers[uuid], {} if pcloud is None else {"pcloud": pcloud}
        found = None if pcloud is None else self.seen.pcloud(pcloud)
        let_in = frozenset() if found is None else self.seen.projects.get(found["id"], ())
        act = partial(self.movers.act, dedicated_hosts.change, uuid, pcloud=pcloud)
        if not self.attempt(act):
            return
        assert (server["status"], server["host"]) == ("SHELVED_OFFLOADED", None)
        assert pcloud is None or server["project_id"] in let_in
        assert self.seen.servers[uuid]["hints"] == wanted
        # From now on, the server must be in the pcloud that it names, or in none.
        self.checks.plain.pop(uuid, None)
        if pcloud is None:
            self.checks.plain[uuid] = None

    # -- agents and the service itself -----------------------------------------------------

    def settle_mostly(self) -> None:
        if not self.rarely():
            self.tell_all()

    def look_after(self) -> None:
        self.do_one({self.tell_one: 2, self.tell_all: 1, self.wait: 1, self.keep: 2})

    def tell_one(self) -> None:
        waiting = self.movers.waiting()
        if waiting:
            order = self.dice.choice(waiting)
            if self.rarely():
                self.checks.fail(order)
            else:
                self.movers.settle(order)
                self.checks.judge()

    def tell_all(self) -> None:
        for order in self.movers.waiting():
            self.movers.settle(order)
        self.checks.judge()

    def wait(self) -> None:
        seconds = LONG_S if self.rarely() else SHORT_S
        self.movers.wait(seconds, silent=self.dice.choice(("", "", "", "a", "b")))
        self.movers.sweep()
        self.checks.judge()

    def keep(self) -> None:
        """The periodic tasks of the service."""
        self.operator.keep_sizes()
        self.checks.judge(may_close=True)
        self.operator.roll_out_ratios()
        self.checks.judge()
        self.operator.look_after_replaced()
        self.checks.judge()
        self.checks.audit()


class Pclouds(RuleBasedStateMachine):
    """Random steps of all actors, one after the other."""

    @initialize(seed=st.integers(0, 2**63))
    def begin(self, seed: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="innkeeper-pclouds-"))
        self.movers = Movers(self.folder, *(reported(name) for name in HOSTS))
        # The judgement of :class:`Movers` does not know ratios that come and go.
        self.movers.is_judged = False
        self.steps = Guests(self.movers, seed)

    @rule()
    def administer(self) -> None:
        self.steps.administer()

    @rule()
    def own(self) -> None:
        self.steps.own()

    @rule()
    def rent(self) -> None:
        self.steps.rent()

    @rule()
    def boot(self) -> None:
        self.steps.boot()

    @rule()
    def plan(self) -> None:
        self.steps.plan()

    @rule()
    def travel(self) -> None:
        self.steps.travel()

    @rule()
    def look_after(self) -> None:
        self.steps.look_after()

    def teardown(self) -> None:
        if hasattr(self, "steps"):
            for _ in HOSTS:
                self.steps.operator.roll_out_ratios()
            self.steps.checks.judge()
            left = [each["settled_to"] for each in self.steps.seen.pclouds.values()]
            assert set(left) <= {None}
            self.steps.checks.audit()
            self.movers.close()
            shutil.rmtree(self.folder)


TestPclouds = pytest.mark.timeout(EXAMPLES * EXAMPLE_MAX_S)(Pclouds.TestCase)
TestPclouds.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # Each example needs a database, and to shrink a failure takes longer than to find it.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
