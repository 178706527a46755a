"""Executes random steps of administrators and of pclouds' owners."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from innkeeper.domain.hosts import InventoryReport
from innkeeper.domain.ids import ServerId
from innkeeper.domain.pclouds import SizePolicy
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import hosts, pclouds
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.candidate_checks import CandidateChecks
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import ALLOWED, PcloudOperator
from tests.support.worlds import World, stranded_without

HOSTS = ("a-rack-1", "a-rack-2", "a-rack-3", "b-rack-4", "b-rack-5")
PROJECTS = ("red", "green", "blue")
FLAVORS = ("tall", "wide")
NAMES = ("one", "two", "three", "four")
RATIOS = (None, 0.5, 1.0, 2.0)
PCLOUDS_MAX = 4
GONE = "90000000-0000-4000-8000-000000000009"
"""No pcloud has this id."""


class Steps:
    """Five hosts of two agents, two host flavors and three projects; every step is checked."""

    def __init__(self, movers: Movers, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self.movers = movers
        self.operator = PcloudOperator(movers)
        self.zone = self.operator.zone_aggregate("north")
        for number, flavor in enumerate(FLAVORS, 1):
            self.operator.define(flavor, number)
        self.checks = CandidateChecks(self.operator, PROJECTS)
        self.attempt = self.checks.attempt
        for name in HOSTS[: self.dice.randint(2, 5)]:
            self.pool(name, self.dice.choice(FLAVORS))
        for act in (self.create, self.create, self.allocate, self.allocate, self.allocate):
            act()

    @property
    def seen(self) -> World:
        """The rows after the last step."""
        return self.checks.seen

    # -- random choices -------------------------------------------------------------------

    def rarely(self) -> bool:
        return self.dice.random() < 0.2

    def often(self) -> bool:
        return self.dice.random() < 0.5

    def do_one(self, acts: Mapping[Callable[[], Any], int]) -> None:
        """Do one of these steps, chosen by their relative frequencies."""
        (act,) = self.dice.choices(list(acts), list(acts.values()))
        act()

    def pcloud(self) -> str:
        return str(self.dice.choice([e["uuid"] for e in self.seen.pclouds.values()] or [GONE]))

    def member(self) -> tuple[str, str, str]:
        """Draw a host of a pcloud; returns its pcloud, its name there, and the machine's name."""
        if not self.seen.members:
            return self.pcloud(), "one", HOSTS[0]
        host_id, found = self.dice.choice(list(self.seen.members.items()))
        uuid = self.seen.pclouds[found["pcloud_id"]]["uuid"]
        return uuid, found["name"], self.seen.hosts[host_id]["name"]

    def server(self) -> ServerId | None:
        """Draw a server, mostly one with a host."""
        there = [e["uuid"] for e in self.seen.servers.values() if e["host"] is not None]
        uuids = list(self.seen.servers) if self.rarely() else there
        return ServerId(self.dice.choice(uuids)) if uuids else None

    def ratio(self) -> float | None:
        return self.dice.choice(RATIOS)

    def guest(self, named: Any) -> str:
        """Draw a project, usually one that may use a pcloud."""
        found = self.seen.pcloud(named) if isinstance(named, str) else None
        let_in = sorted(self.seen.projects.get(found["id"], ())) if found else []
        return str(self.dice.choice([*PROJECTS, *let_in, *let_in, *let_in]))

    # -- administrators --------------------------------------------------------------------

    def administer(self) -> None:
        self.do_one(
            {
                self.change_flavor: 1,
                self.pool_one: 3,
                self.unpool: 1,
                self.switch_service: 2,
                self.maintain: 2,
                self.set_quota: 1,
                self.edit_zone: 1,
                self.edit_members: 1,
                self.edit_keys: 2,
                self.report: 2,
            }
        )

    def change_flavor(self) -> None:
        flavor, units, by = self.dice.choice(FLAVORS), self.dice.randint(0, 3), self.rarely()
        if flavor not in {each["flavor_id"] for each in self.seen.flavors.values()}:
            self.attempt(lambda: self.operator.define(flavor, units))
        elif self.rarely():
            self.attempt(lambda: self.operator.undefine(flavor, by_aggregate=by))
        else:
            self.attempt(lambda: self.operator.redefine(flavor, units, by_aggregate=by))

    def pool_one(self) -> None:
        self.pool(self.dice.choice(HOSTS), self.dice.choice(FLAVORS))

    def pool(self, host: str, flavor: str) -> None:
        by = self.rarely()
        if not self.rarely() and self.seen.by_name(host)["id"] not in self.seen.pooled:
            change = ServiceChange(is_disabled=True)
            self.attempt(lambda: self.operator.switch_service(host, change))
        self.attempt(lambda: self.operator.pool(flavor, host, by_aggregate=by))

    def flavor_of(self, host: str) -> str:
        """Return the flavor of a host or, rarely, a random one."""
        pooled = self.seen.pooled.get(self.seen.by_name(host)["id"])
        if pooled is None or self.rarely():
            return self.dice.choice(FLAVORS)
        return str(self.seen.flavors[pooled["host_flavor_id"]]["flavor_id"])

    def unpool(self) -> None:
        host, by = self.dice.choice(HOSTS), self.rarely()
        flavor = self.flavor_of(host)
        self.attempt(lambda: self.operator.unpool(flavor, host, by_aggregate=by))

    def switch_service(self) -> None:
        change = ServiceChange(is_disabled=self.rarely(), is_forced_down=self.rarely())
        host = self.dice.choice(HOSTS)
        self.attempt(lambda: self.operator.switch_service(host, change))

    def maintain(self) -> None:
        host = self.dice.choice(HOSTS)
        flavor = self.flavor_of(host)
        reason = self.dice.choice((None, "Fans."))
        self.attempt(lambda: self.operator.maintain(flavor, host, reason))

    def set_quota(self) -> None:
        project, limit = self.dice.choice(PROJECTS), self.dice.randint(-1, 4)
        self.attempt(lambda: self.operator.set_quota(project, limit))

    def edit_zone(self) -> None:
        work = self.dice.choice((self.operator.put_in, self.operator.take_out))
        host = self.dice.choice(HOSTS)
        self.attempt(lambda: work(self.zone, host))

    def edit_members(self) -> None:
        work = self.dice.choice((self.operator.put_in, self.operator.take_out))
        host, uuid = self.dice.choice(HOSTS), self.pcloud()
        self.attempt(lambda: work(self.operator.row_of(uuid), host))

    def edit_keys(self) -> None:
        uuid = self.pcloud() if self.rarely() else self.member()[0]
        project, ratio = self.dice.choice(PROJECTS), self.ratio()
        text = None if ratio is None else f"{ratio:g}"
        ways: tuple[dict[str, str | None], ...] = (
            {"pcloud:owner": project},
            {f"pcloud:{project}": ALLOWED, "cpu_allocation_ratio": text},
            {f"pcloud:{project}": None, "mine": "yes"},
            {"ram_allocation_ratio": text, "pcloud:owner": project},
            {"ram_allocation_ratio": text, "pcloud:id": GONE},
            {"pcloud:name": "other", "pcloud:host:one": HOSTS[0]},
        )
        wanted = self.dice.choice(ways)
        self.attempt(lambda: self.operator.edit(self.operator.row_of(uuid), wanted))

    def report(self) -> None:
        host, ratio = self.dice.choice(HOSTS), self.dice.choice((None, 1.0, 3.0))
        line = InventoryReport(self.dice.choice((3, 4, 5)), allocation_ratio=ratio)
        if ratio is not None:
            self.checks.own[host]["VCPU"] = ratio
        output = reported(host, inventories={"VCPU": line})
        if self.rarely():
            # A class can disappear for a while, and return.
            rest = {k: each for k, each in output.inventories.items() if k != "MEMORY_MB"}
            output = replace(output, inventories=rest)
        self.attempt(lambda: self.movers.report(output))

    # -- owners ----------------------------------------------------------------------------

    def own(self) -> None:
        self.do_one(
            {
                self.create: 2,
                self.update: 3,
                self.delete_pcloud: 2,
                self.allocate: 6,
                self.switch: 4,
                self.rename: 2,
                self.replace: 3,
                self.release: 1,
                self.let_in: 3,
                self.accept: 3,
                self.switch_automatic: 3,
                self.give_away: 3,
            }
        )

    def own_act(self, uuid: str, work: Callable[..., Any], *given: Any) -> None:
        """Change a pcloud as its owner."""
        self.attempt(
            lambda: self.operator.act(
                uuid, lambda tx, pcloud, context: work(tx, pcloud, *given, context)
            ),
            by_owner=True,
        )

    def create(self) -> None:
        if len(self.seen.pclouds) < PCLOUDS_MAX:
            facts = {"name": "mine", "is_automatic": self.often(), "cpu_ratio": self.ratio()}
            project = self.dice.choice(PROJECTS)
            self.attempt(lambda: self.operator.create(project, **facts), by_owner=True)

    def update(self) -> None:
        size = SizePolicy(
            hosts_min=self.dice.randint(0, 1),
            hosts_max=self.dice.randint(1, 3),
            host_flavor=self.dice.choice(FLAVORS),
            idle_s=self.dice.choice((None, 0)),
        )
        facts: dict[str, Any] = {
            "is_automatic": self.often(),
            "cpu_ratio": self.ratio(),
            "ram_ratio": self.ratio(),
            "size": size if self.rarely() else None,
        }
        some = self.dice.sample(sorted(facts), 2)
        uuid = self.pcloud() if self.rarely() else self.member()[0]
        # One host at a time too, so that other steps come in between.
        work = partial(pclouds.update, at_once=1) if self.often() else pclouds.update
        self.own_act(uuid, work, {key: facts[key] for key in some})

    def switch_automatic(self) -> None:
        """Change only automatic placement.

        A change of ratios rereads the hosts, which would hide a missed update.
        """
        uuid = self.member()[0]
        pcloud = self.seen.pcloud(uuid)
        is_automatic = pcloud is None or not pcloud["is_automatic"]
        self.own_act(uuid, pclouds.update, {"is_automatic": is_automatic})

    def delete_pcloud(self) -> None:
        there = [each["uuid"] for each in self.seen.pclouds.values()]
        bare = [uuid for uuid in there if not self.seen.members_of(uuid)]
        uuid = self.dice.choice(bare) if bare and self.often() else self.pcloud()
        by, forced = self.rarely(), self.often()
        stranded = stranded_without(self.seen, uuid)
        was_done = self.attempt(
            lambda: self.operator.delete(uuid, by_aggregate=by, is_forced=forced), by_owner=not by
        )
        assert not (was_done and stranded) or (forced and not by), stranded

    def allocate(self) -> None:
        uuid = self.pcloud() if self.rarely() else self.member()[0]
        requests = [
            HostRequest(
                self.dice.choice(NAMES),
                self.dice.choice(FLAVORS),
                "north" if self.rarely() else None,
                not self.rarely(),
            )
            for _ in range(self.dice.choice((1, 1, 2, 3)))
        ]
        self.attempt(lambda: self.operator.allocate(uuid, *requests), by_owner=True)

    def switch(self) -> None:
        is_enabled, (uuid, name, machine) = self.dice.random() < 0.6, self.member()
        if self.rarely():
            self.attempt(
                lambda: self.operator.switch_by_aggregate(uuid, machine, is_enabled=is_enabled)
            )
        else:
            self.attempt(
                lambda: self.operator.switch(uuid, name, is_enabled=is_enabled), by_owner=True
            )

    def rename(self) -> None:
        uuid, name, _ = self.member()
        new = self.dice.choice(NAMES)
        self.attempt(
            lambda: self.operator.act(
                uuid,
                lambda tx, p, context: hosts.rename(tx, p, hosts.get(tx, p, name), new, context),
            ),
            by_owner=True,
        )

    def replace(self) -> None:
        uuid, name, machine = self.member()
        if not self.rarely():
            self.force_down(machine, is_down=True)
        self.attempt(
            lambda: self.operator.act(
                uuid, lambda tx, pcloud, context: hosts.replace(tx, pcloud, name, context)
            ),
            by_owner=True,
            may_close=True,
        )
        if not self.rarely():
            self.force_down(machine, is_down=False)

    def force_down(self, machine: str, *, is_down: bool) -> None:
        change = ServiceChange(is_forced_down=is_down)
        self.attempt(lambda: self.operator.switch_service(machine, change))

    def release(self) -> None:
        uuid, name, machine = self.member()
        if not self.rarely():
            self.attempt(lambda: self.operator.switch(uuid, name, is_enabled=False))
        if self.rarely():
            self.attempt(lambda: self.operator.take_out(self.operator.row_of(uuid), machine))
        else:
            work = hosts.release
            self.attempt(lambda: self.operator.act_on(uuid, name, work), by_owner=True)

    def let_in(self) -> None:
        work = pclouds.drop if self.often() else pclouds.authorize
        self.own_act(self.pcloud(), work, self.dice.choice(PROJECTS))

    def accept(self) -> None:
        """Have a project, mostly a guest, accept or refuse automatic placement."""
        uuid = self.pcloud() if self.rarely() else self.member()[0]
        project = self.dice.choice(PROJECTS) if self.rarely() else self.mere_guest(uuid)
        found = self.seen.pcloud(uuid)
        accepted = self.seen.accepted.get(found["id"], ()) if found else ()
        if self.rarely() or (project in accepted and self.often()):
            self.own_act(uuid, pclouds.decline, project)
            return
        self.attempt(
            lambda: self.operator.act(
                uuid, lambda tx, pcloud, context: pclouds.accept(tx, pcloud, project, context)
            ),
            by_owner=True,
            accepted=(uuid, project),
        )

    def mere_guest(self, uuid: str) -> str:
        """Return a project that may use a pcloud but does not own it; authorizes one if needed."""
        found = self.seen.pcloud(uuid)
        owner = None if found is None else found["project_id"]
        others = [each for each in PROJECTS if each != owner]
        guests = self.seen.projects.get(found["id"], frozenset()) if found else frozenset()
        project = str(self.dice.choice(sorted(guests.intersection(others)) or others))
        if project not in guests:
            self.own_act(uuid, pclouds.authorize, project)
        return project

    def give_away(self) -> None:
        """Transfer a pcloud to a project with exactly enough quota for it, or not quite enough."""
        uuid = self.member()[0]
        pcloud = self.seen.pcloud(uuid)
        owner = None if pcloud is None else pcloud["project_id"]
        project = self.dice.choice([each for each in PROJECTS if each != owner])
        units = sum(each["units"] for each in self.seen.members_of(uuid))
        limit = max(0, self.seen.units()[project] + units - self.dice.randint(0, 1))
        if not self.rarely():
            self.attempt(lambda: self.operator.set_quota(project, limit))
        self.attempt(
            lambda: self.operator.edit(self.operator.row_of(uuid), {"pcloud:owner": project})
        )
