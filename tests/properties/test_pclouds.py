"""Whatever administrators, owners, tenants and agents do, whole hosts stay with whom they are.

After every step the tables are read anew and judged by rules of this test's own: whose host is
which, who is on it, what is paid for it, what it gives out, and what is shown of it. A step
that was refused has changed nothing. Booted and moved servers are where the seed's rule lets
them be, and a request that could have had a host has had one.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from innkeeper.domain.errors import Refusal
from innkeeper.domain.hosts import InventoryReport
from innkeeper.domain.ids import ServerId
from innkeeper.domain.pclouds import SizePolicy
from innkeeper.snapshot import loader
from innkeeper.snapshot.audit import differences
from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.compute.hosts import ServiceChange
from innkeeper.systems.compute.moves import resizing, shelving
from innkeeper.systems.pclouds import hosts, pclouds
from innkeeper.systems.pclouds.hosts import Wish
from innkeeper.systems.placement import audit as placement_audit
from tests.support.clouds import OF_MACHINES, SMALL, UNLIMITED, reported
from tests.support.dedicated import (
    RATIOS,
    Row,
    World,
    broken,
    left_wrongly,
    may_take,
    overdrawn,
    ratios_of,
)
from tests.support.landlords import Landlord
from tests.support.moves import Movers

HOSTS = ("a-rack-1", "a-rack-2", "a-rack-3", "b-rack-4", "b-rack-5")
PROJECTS = ("red", "green", "blue")
FLAVORS = ("tall", "wide")
NAMES = ("one", "two", "three")
NEEDS = {"VCPU": SMALL.vcpus, "MEMORY_MB": SMALL.memory_mb, "DISK_GB": SMALL.disk_gb}
SERVERS_MAX = 8
PCLOUDS_MAX = 4
GONE = "90000000-0000-4000-8000-000000000009"
# A ratio below what is in use, or a host that shrank, leaves a host with more than it has.
EXPECTED = (*OF_MACHINES, placement_audit.OVER_CAPACITY)

picks = st.integers(0, 1000)
rarely = st.integers(0, 4).map(lambda number: number == 0)
mostly = rarely.map(lambda is_so: not is_so)
hostnames = st.sampled_from(HOSTS)
projects = st.sampled_from(PROJECTS)
flavors = st.sampled_from(FLAVORS)
names = st.sampled_from(NAMES)
ratios = st.sampled_from((None, 0.5, 1.0, 2.0))
policies = st.one_of(
    st.none(),
    st.builds(
        SizePolicy,
        hosts_min=st.integers(0, 1),
        hosts_max=st.integers(1, 3),
        host_flavor=flavors,
        idle_s=st.sampled_from((None, 0)),
    ),
)


class Pclouds(RuleBasedStateMachine):
    """Five hosts of two agents, two host flavors and three projects."""

    @initialize(pooled=st.integers(0, 5), taken=st.integers(0, 3), is_automatic=rarely)
    def begin(self, pooled: int, taken: int, is_automatic: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="innkeeper-pclouds-"))
        computing = msgspec.structs.replace(UNLIMITED, allow_resize_to_same_host=False)
        self.movers = Movers(
            self.folder, *(reported(name) for name in HOSTS), computing=computing
        )
        # What it judges by knows nothing of ratios that come and go.
        self.movers.is_judged = False
        self.landlord = Landlord(self.movers)
        # What hosts' own ratios are, as their agents said last.
        self.own = {name: {"VCPU": 1.0, "MEMORY_MB": 1.0} for name in HOSTS}
        self.vcpus = dict.fromkeys(HOSTS, 4)
        self.zone = self.landlord.zone_aggregate("north")
        for number, flavor in enumerate(FLAVORS, 1):
            self.landlord.define(flavor, number)
        self.seen = self.landlord.world()
        self.judge()
        for name in HOSTS[:pooled]:
            self.pool(name, FLAVORS[0], is_prepared=True, by=False)
        self.create("red", is_automatic, None)
        for name in NAMES[: min(taken, pooled)]:
            self.allocate(0, [(name, FLAVORS[0], False, True)])

    # -- how steps are judged --------------------------------------------------------------

    def attempt(
        self, work: Callable[[], Any], *, by_owner: bool = False, may_close: bool = False
    ) -> None:
        """Do something that may be refused; then nothing has changed."""
        before = self.seen
        try:
            work()
        except Refusal as refusal:
            assert self.landlord.world() == before
            # Administrators may be told of machines.
            assert not by_owner or "rack" not in refusal.message, refusal.message
        self.judge(may_close=may_close)

    def judge(self, *, may_close: bool = False) -> None:
        """What is true of every step is true of the last one."""
        before, after = self.seen, self.landlord.world()
        self.seen = after
        assert broken(after) == []
        closing = before.members.keys() if may_close else ()
        assert left_wrongly(before, after, closing) == []
        assert overdrawn(before, after, self.landlord.limits(PROJECTS)) == []
        self.judge_ratios(after)
        self.judge_views(after)
        with self.movers.cloud.store.read() as tx:
            assert differences(self.movers.cloud.table, loader.load_all(tx)) == []
            found = [*placement_audit.findings(tx), *compute_audit.findings(tx)]
        assert [each for each in found if each.invariant not in EXPECTED] == []

    def judge_ratios(self, seen: World) -> None:
        """I6 to its end: where no pcloud says anything, the host's own is in force."""
        for host_id, host in seen.hosts.items():
            pcloud = seen.pcloud_of(host_id)
            said = {} if pcloud is None else ratios_of(pcloud)
            for name in RATIOS.keys() & seen.lines[host["provider_id"]].keys():
                line = seen.lines[host["provider_id"]][name]
                assert line.ratio == said.get(name, self.own[host["name"]][name])
                assert line.max_unit == line.total, (host["name"], name, line)

    def judge_views(self, seen: World) -> None:
        """I7: no user is told a machine's name, and aggregates say what is so."""
        told = [self.landlord.shown(PROJECTS), self.landlord.shown_runs(seen)]
        told += [(each["fault"] or {}).get("message", "") for each in seen.servers.values()]
        assert not [each for each in told if "rack" in each]
        said = self.landlord.metadata()
        for pcloud in seen.pclouds.values():
            mine = said[f"Pcloud:{pcloud['uuid']}"]
            assert mine["pcloud:owner"] == pcloud["project_id"]
            expected = {
                f"pcloud:host:{each['name']}": seen.hosts[each["host_id"]]["name"]
                for each in seen.members_of(pcloud["uuid"])
            }
            begin = "pcloud:host:"
            assert {key: mine[key] for key in mine if key.startswith(begin)} == expected
            let_in = {key.removeprefix("pcloud:") for key in mine if "tenant" in mine[key]}
            assert let_in == seen.projects.get(pcloud["id"], frozenset())

    def pcloud(self, number: int) -> Row:
        """One of the pclouds."""
        found = list(self.seen.pclouds.values())
        return found[number % len(found)]

    def member(self, number: int) -> tuple[str, str, str]:
        """One of the hosts of pclouds: its pcloud, its name there, and the machine's."""
        host_id, found = list(self.seen.members.items())[number % len(self.seen.members)]
        uuid = self.seen.pclouds[found["pcloud_id"]]["uuid"]
        return uuid, found["name"], self.seen.hosts[host_id]["name"]

    def server(self, number: int) -> ServerId:
        """One of the servers."""
        return ServerId(list(self.seen.servers)[number % len(self.seen.servers)])

    # -- administrators --------------------------------------------------------------------

    @rule(flavor=flavors, units=st.integers(0, 3), how=st.sampled_from("cuuud"), by=rarely)
    def change_flavor(self, flavor: str, units: int, how: str, by: bool) -> None:
        ways: dict[str, Callable[[], None]] = {
            "c": lambda: self.landlord.define(flavor, units),
            "u": lambda: self.landlord.redefine(flavor, units, by_aggregate=by),
            "d": lambda: self.landlord.undefine(flavor, by_aggregate=by),
        }
        self.attempt(ways[how])

    @rule(host=hostnames, flavor=flavors, is_prepared=mostly, by=rarely)
    def pool(self, host: str, flavor: str, is_prepared: bool, by: bool) -> None:
        if is_prepared and self.seen.by_name(host)["id"] not in self.seen.pooled:
            change = ServiceChange(is_disabled=True)
            self.attempt(lambda: self.landlord.switch_service(host, change))
        self.attempt(lambda: self.landlord.pool(flavor, host, by_aggregate=by))

    @rule(host=hostnames, flavor=flavors, by=rarely)
    def unpool(self, host: str, flavor: str, by: bool) -> None:
        self.attempt(lambda: self.landlord.unpool(flavor, host, by_aggregate=by))

    @rule(host=hostnames, is_disabled=rarely, is_down=rarely)
    def switch_service(self, host: str, is_disabled: bool, is_down: bool) -> None:
        change = ServiceChange(is_disabled=is_disabled, is_forced_down=is_down)
        self.attempt(lambda: self.landlord.switch_service(host, change))

    @rule(host=hostnames, flavor=flavors, reason=st.sampled_from((None, "Fans.")))
    def maintain(self, host: str, flavor: str, reason: str | None) -> None:
        self.attempt(lambda: self.landlord.maintain(flavor, host, reason))

    @rule(project=projects, limit=st.integers(-1, 4))
    def set_quota(self, project: str, limit: int) -> None:
        self.attempt(lambda: self.landlord.set_quota(project, limit))

    @rule(host=hostnames, is_in=st.booleans())
    def move_to_zone(self, host: str, is_in: bool) -> None:
        work = self.landlord.put_in if is_in else self.landlord.take_out
        self.attempt(lambda: work(self.zone, host))

    @precondition(lambda self: self.seen.pclouds)
    @rule(number=picks, host=hostnames, is_in=st.booleans())
    def move_by_hand(self, number: int, host: str, is_in: bool) -> None:
        row = self.pcloud(number)["aggregate_id"]
        work = self.landlord.put_in if is_in else self.landlord.take_out
        self.attempt(lambda: work(row, host))

    @precondition(lambda self: self.seen.pclouds)
    @rule(number=picks, project=projects, key=st.sampled_from("oopkcrn"), text=ratios)
    def edit_by_hand(self, number: int, project: str, key: str, text: float | None) -> None:
        ratio = None if text is None else f"{text:g}"
        ways: dict[str, Mapping[str, str | None]] = {
            "o": {"pcloud:owner": project},
            "p": {f"pcloud:{project}": "pcloud-tenant", "cpu_allocation_ratio": ratio},
            "k": {f"pcloud:{project}": None, "mine": "yes"},
            "c": {"cpu_allocation_ratio": ratio, "pcloud:owner": project},
            "r": {"ram_allocation_ratio": ratio, "pcloud:id": GONE},
            "n": {"pcloud:name": "other", "pcloud:host:one": HOSTS[0]},
        }
        self.attempt(lambda: self.landlord.edit(self.pcloud(number)["aggregate_id"], ways[key]))

    @rule(
        host=hostnames,
        ratio=st.sampled_from((None, 1.0, 3.0)),
        vcpus=st.sampled_from((3, 4, 4, 5)),
        are_there=mostly,
    )
    def report(self, host: str, ratio: float | None, vcpus: int, are_there: bool) -> None:
        told = reported(
            host, inventories={"VCPU": InventoryReport(vcpus, None, None, None, None, ratio)}
        )
        before = self.seen.by_name(host)
        is_known = any(each["host"] == host for each in self.seen.servers.values())
        if not are_there and not is_known and before["id"] not in self.seen.members:
            return
        if ratio is not None:
            self.own[host]["VCPU"] = ratio
        self.attempt(lambda: self.movers.report(told))

    # -- owners ----------------------------------------------------------------------------

    @precondition(lambda self: len(self.seen.pclouds) < PCLOUDS_MAX)
    @rule(project=projects, is_automatic=rarely, cpu=ratios)
    def create(self, project: str, is_automatic: bool, cpu: float | None) -> None:
        facts = {"name": "mine", "is_automatic": is_automatic, "cpu_ratio": cpu}
        self.attempt(lambda: self.landlord.create(project, **facts), by_owner=True)

    @precondition(lambda self: self.seen.pclouds)
    @rule(number=picks, is_automatic=st.booleans(), cpu=ratios, ram=ratios, size=policies)
    def update(
        self,
        number: int,
        is_automatic: bool,
        cpu: float | None,
        ram: float | None,
        size: SizePolicy | None,
    ) -> None:
        uuid = self.pcloud(number)["uuid"]
        facts: dict[str, Any] = {"is_automatic": is_automatic, "cpu_ratio": cpu}
        facts |= {"ram_ratio": ram, "size": size}
        self.attempt(lambda: self.landlord.update(uuid, **facts), by_owner=True)

    @precondition(lambda self: self.seen.pclouds)
    @rule(number=picks, is_meant=rarely, by=rarely)
    def delete_pcloud(self, number: int, is_meant: bool, by: bool) -> None:
        uuid = self.pcloud(number)["uuid"]
        if is_meant or self.seen.members_of(uuid):
            self.attempt(lambda: self.landlord.delete(uuid, by_aggregate=by), by_owner=not by)

    @precondition(lambda self: self.seen.pclouds)
    @rule(
        number=picks,
        wanted=st.lists(st.tuples(names, flavors, rarely, mostly), min_size=1, max_size=3),
    )
    def allocate(self, number: int, wanted: list[tuple[str, str, bool, bool]]) -> None:
        uuid = self.pcloud(number)["uuid"]
        wishes = [
            Wish(name, flavor, "north" if is_north else None, is_enabled)
            for name, flavor, is_north, is_enabled in wanted
        ]
        self.attempt(lambda: self.landlord.allocate(uuid, *wishes), by_owner=True)

    @precondition(lambda self: self.seen.members)
    @rule(number=picks, is_enabled=st.booleans(), by=rarely)
    def switch(self, number: int, is_enabled: bool, by: bool) -> None:
        uuid, name, machine = self.member(number)
        if by:
            self.attempt(
                lambda: self.landlord.switch_by_aggregate(uuid, machine, is_enabled=is_enabled)
            )
        else:
            self.attempt(
                lambda: self.landlord.switch(uuid, name, is_enabled=is_enabled), by_owner=True
            )

    @precondition(lambda self: self.seen.members)
    @rule(number=picks, new=names)
    def rename(self, number: int, new: str) -> None:
        uuid, name, _ = self.member(number)

        def act() -> None:
            self.landlord.act(
                uuid,
                lambda tx, pcloud, terms: hosts.rename(
                    tx, pcloud, hosts.get(tx, pcloud, name), new, terms
                ),
            )

        self.attempt(act, by_owner=True)

    @precondition(lambda self: self.seen.members)
    @rule(number=picks)
    def replace(self, number: int) -> None:
        uuid, name, _ = self.member(number)

        def act() -> None:
            self.landlord.act(
                uuid, lambda tx, pcloud, terms: hosts.replace(tx, pcloud, name, terms)
            )

        self.attempt(act, by_owner=True, may_close=True)

    @precondition(lambda self: self.seen.members)
    @rule(number=picks, is_prepared=mostly, by=rarely)
    def release(self, number: int, is_prepared: bool, by: bool) -> None:
        uuid, name, machine = self.member(number)
        if is_prepared:
            self.attempt(lambda: self.landlord.switch(uuid, name, is_enabled=False))
        if by:
            row = self.landlord.row_of(uuid)
            self.attempt(lambda: self.landlord.take_out(row, machine))
        else:
            self.attempt(lambda: self.landlord.act_on(uuid, name, hosts.release), by_owner=True)

    @precondition(lambda self: self.seen.pclouds)
    @rule(number=picks, project=projects, is_in=mostly)
    def let_in(self, number: int, project: str, is_in: bool) -> None:
        work = pclouds.authorize if is_in else pclouds.drop
        uuid = self.pcloud(number)["uuid"]
        self.attempt(
            lambda: self.landlord.act(
                uuid, lambda tx, pcloud, terms: work(tx, pcloud, project, terms)
            ),
            by_owner=True,
        )

    # -- tenants ---------------------------------------------------------------------------

    @precondition(lambda self: len(self.seen.servers) < SERVERS_MAX)
    @rule(
        project=projects,
        number=picks,
        hint=st.sampled_from("nnhhhhbg"),
        host=st.one_of(st.none(), names),
        forced=st.one_of(st.none(), st.none(), hostnames),
        is_built=mostly,
    )
    def boot(
        self,
        project: str,
        number: int,
        hint: str,
        host: str | None,
        forced: str | None,
        is_built: bool,
    ) -> None:
        there = [each["uuid"] for each in self.seen.pclouds.values()] or [GONE]
        ways: dict[str, dict[str, Any]] = {
            "n": {},
            "h": {"pcloud": there[number % len(there)]},
            "b": {"pcloud": there},
            "g": {"pcloud": GONE},
        }
        hints = ways[hint]
        if hints and host is not None:
            hints["pcloud_host"] = host
        before, cloud = self.seen, self.movers.cloud
        request = cloud.request(
            project_id=project, hints=hints, forced_host=forced, now=self.movers.now
        )
        cloud.boot(request)
        self.judge()
        (uuid,) = request.server_ids
        home = self.seen.servers[uuid]["host"] if uuid in self.seen.servers else None
        able = [
            each["name"]
            for host_id, each in before.hosts.items()
            if may_take(before, host_id, project, hints, is_boot=True)
            and self.is_able(before, each)
            and forced in (None, each["name"])
        ]
        assert home in able if able else home is None
        if is_built and home is not None:
            self.movers.tell("build", uuid)
            self.judge()

    def is_able(self, seen: World, host: Row) -> bool:
        """Whether a host is in order, and has room for one more server."""
        silent_s = (self.movers.now - host["last_seen_at"]).total_seconds()
        is_up = silent_s <= UNLIMITED.service_down_time_s and not host["is_forced_down"]
        lines = seen.lines[host["provider_id"]]
        has_room = all(name in lines and lines[name].takes(n) for name, n in NEEDS.items())
        return bool(is_up and not host["is_disabled"] and has_room)

    @precondition(lambda self: self.seen.servers)
    @rule(number=picks, is_told=mostly)
    def delete(self, number: int, is_told: bool) -> None:
        uuid = self.server(number)
        self.attempt(lambda: self.movers.delete(uuid))
        if is_told:
            self.tell_all()

    @precondition(lambda self: self.seen.servers)
    @rule(
        number=picks,
        how=st.sampled_from(("resize", "cold", "live", "evacuate", "shelve", "unshelve")),
        place=st.one_of(st.none(), hostnames),
        is_forced=rarely,
        is_told=mostly,
    )
    def move(
        self, number: int, how: str, place: str | None, is_forced: bool, is_told: bool
    ) -> None:
        uuid, movers = self.server(number), self.movers
        force = {"is_forced": True} if is_forced and place is not None else {}
        ways: dict[str, Callable[[], Any]] = {
            "resize": lambda: movers.resize(uuid, "big"),
            "cold": lambda: movers.migrate(uuid, host=place),
            "live": lambda: movers.migrate_live(uuid, host=place, **force),
            "evacuate": lambda: movers.evacuate(uuid, host=place, **force),
            "shelve": lambda: movers.act(shelving.shelve, uuid, offload_time_s=0),
            "unshelve": lambda: movers.unshelve(uuid, host=place),
        }
        before = self.seen
        self.attempt(ways[how])
        self.judge_move(before, uuid)
        if is_told:
            self.tell_all()

    def judge_move(self, before: World, uuid: str) -> None:
        """A server that goes somewhere goes where its owner's request could go now."""
        server, was = self.seen.servers[uuid], before.servers[uuid]
        going = {server["host"]} - {was["host"], None}
        old = {each["id"] for each in before.moves}
        going |= {e["dest_host"] for e in self.seen.moves if e["id"] not in old} - {None}
        for name in going:
            host_id, project = self.seen.by_name(name)["id"], server["project_id"]
            hints = server["hints"]
            assert may_take(before, host_id, project, hints, is_boot=False), name

    @precondition(lambda self: self.seen.servers)
    @rule(number=picks, is_kept=st.booleans(), is_told=mostly)
    def decide(self, number: int, is_kept: bool, is_told: bool) -> None:
        work = resizing.confirm if is_kept else resizing.revert
        self.attempt(lambda: self.movers.act(work, self.server(number)))
        if is_told:
            self.tell_all()

    # -- agents and the service itself -----------------------------------------------------

    @rule(number=picks, fails=rarely)
    def tell(self, number: int, fails: bool) -> None:
        waiting = self.movers.waiting()
        if waiting:
            self.movers.settle(waiting[number % len(waiting)], "No." if fails else None)
            self.judge()

    @rule()
    def tell_all(self) -> None:
        for order in self.movers.waiting():
            self.movers.settle(order)
        self.judge()

    @rule(silent=st.sampled_from(("", "", "a", "b")), is_long=rarely)
    def wait(self, silent: str, is_long: bool) -> None:
        self.movers.wait(601.0 if is_long else 61.0, silent=silent)
        self.movers.sweep()
        self.judge()

    @rule()
    def look_after(self) -> None:
        self.landlord.keep_sizes()
        self.judge(may_close=True)
        self.landlord.release_replaced()
        self.judge()

    def teardown(self) -> None:
        if not hasattr(self, "movers"):
            return
        with contextlib.suppress(FileNotFoundError):
            self.movers.close()
            shutil.rmtree(self.folder)


TestPclouds = Pclouds.TestCase
TestPclouds.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # Each example takes a database; making a failing one small takes longer than finding it.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
