"""Checks every step in a cloud with dedicated hosts against independent rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.domain.orders import WorkOrder
from innkeeper.snapshot import loader
from innkeeper.snapshot.audit import differences
from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.pclouds import audit as pcloud_audit
from innkeeper.systems.placement import audit as placement_audit
from tests.support.clouds import OF_MACHINES, SMALL, UNLIMITED
from tests.support.dedicated import (
    RATIOS,
    accepted_wrongly,
    broken,
    inherited_wrongly,
    left_wrongly,
    overdrawn,
    said_of,
)
from tests.support.pcloud_operator import ALLOWED, PcloudOperator
from tests.support.pcloud_views import shown, shown_billing_periods
from tests.support.worlds import Row, World, may_take, named, takes_unasked

NEEDS = {"VCPU": SMALL.vcpus, "MEMORY_MB": SMALL.memory_mb, "DISK_GB": SMALL.disk_gb}
# A ratio below the usage, or a host that shrank, leaves a host over capacity.
EXPECTED = (*OF_MACHINES, placement_audit.OVER_CAPACITY)
MARK = "rack"
"""A part of every machine's name. No name that users choose contains it."""


class CandidateChecks:
    """Compares all rows after each step with ``seen``, the rows after the previous step.

    ``own`` are the ratios that agents reported, by host and class. ``plain`` maps each server that
    named no pcloud to the pcloud that admitted it, or to ``None``.
    """

    def __init__(self, operator: PcloudOperator, projects: Sequence[str]) -> None:
        self.operator = operator
        self.cloud = operator.cloud
        self.seen = operator.world()
        names = [each["name"] for each in self.seen.hosts.values()]
        self.own = {name: dict.fromkeys(RATIOS, 1.0) for name in names}
        self.plain: dict[str, str | None] = {}
        self._projects = projects

    def attempt(
        self,
        work: Callable[[], Any],
        *,
        by_owner: bool = False,
        may_close: bool = False,
        accepted: tuple[str, str] | None = None,
    ) -> bool:
        """Try an action; a rejected one must change nothing. Returns whether it succeeded."""
        try:
            work()
        except Refusal as refusal:
            assert self.operator.world() == self.seen
            # Administrators may see machines' names.
            assert not by_owner or MARK not in refusal.message, refusal.message
            return False
        self.judge(may_close=may_close, accepted=accepted)
        return True

    def judge(self, *, may_close: bool = False, accepted: tuple[str, str] | None = None) -> None:
        """Check the invariants after the last step."""
        before, after = self.seen, self.operator.world()
        self.seen = after
        assert broken(after) == []
        closing = before.members.keys() if may_close else ()
        assert left_wrongly(before, after, closing) == []
        assert overdrawn(before, after, self.operator.limits(self._projects)) == []
        assert accepted_wrongly(before, after, accepted) == []
        assert inherited_wrongly(before, after) == []
        self._judge_plain(after)
        self._judge_taken_in(after)
        self._judge_ratios(after)
        self._judge_views(after)
        with self.cloud.store.read() as tx:
            assert differences(self.cloud.table, loader.load_all(tx)) == []

    def _judge_taken_in(self, seen: World) -> None:
        """Check that the host table knows which pclouds with hosts take plain requests."""
        known = self.cloud.table.dedications
        for row in {each["pcloud_id"] for each in seen.members.values()}:
            pcloud = seen.pclouds[row]
            for project_id in self._projects:
                is_taken_in = pcloud["uuid"] in known.automatic_of(project_id)
                assert is_taken_in == takes_unasked(seen, pcloud, project_id), project_id

    def _judge_plain(self, seen: World) -> None:
        """Check that a server that named no pcloud is in the one that admitted it, or in none."""
        for uuid in self.plain.keys() & seen.servers.keys():
            name = seen.servers[uuid]["host"]
            home = None if name is None else seen.pcloud_of(seen.by_name(name)["id"])
            assert home is None or home["uuid"] == self.plain[uuid], (uuid, name, self.plain)

    def audit(self) -> None:
        """Check that the rooms' own audits find nothing."""
        with self.cloud.store.read() as tx:
            found = [
                *placement_audit.findings(tx),
                *compute_audit.findings(tx),
                *pcloud_audit.findings(tx),
            ]
        assert [each for each in found if each.invariant not in EXPECTED] == []

    def _judge_ratios(self, seen: World) -> None:
        """Check I6: if no pcloud sets a ratio, the host's own ratio is in force."""
        for host_id, host in seen.hosts.items():
            said = said_of(seen, host_id)
            for name in RATIOS.keys() & seen.lines[host["provider_id"]].keys():
                line = seen.lines[host["provider_id"]][name]
                assert line.ratio == said.get(name, self.own[host["name"]][name])
                assert line.max_unit == line.total, (host["name"], name, line)

    def _judge_views(self, seen: World) -> None:
        """Check I7: no user sees a machine's name, and aggregates show the true state."""
        output = [shown(self.operator, self._projects), shown_billing_periods(self.operator, seen)]
        output += [(each["fault"] or {}).get("message", "") for each in seen.servers.values()]
        assert not [each for each in output if MARK in each]
        said = self.operator.metadata()
        for pcloud in seen.pclouds.values():
            mine = said[f"Pcloud:{pcloud['uuid']}"]
            assert mine["pcloud:owner"] == pcloud["project_id"]
            begin = "pcloud:host:"
            assert {key: mine[key] for key in mine if key.startswith(begin)} == {
                f"{begin}{each['name']}": seen.hosts[each["host_id"]]["name"]
                for each in seen.members_of(pcloud["uuid"])
            }
            let_in = {key.removeprefix("pcloud:") for key in mine if mine[key] == ALLOWED}
            assert let_in == seen.projects.get(pcloud["id"], frozenset())

    # -- servers ---------------------------------------------------------------------------

    def boot(
        self, project_id: str, hints: Mapping[str, Any], forced: str | None = None
    ) -> ServerId:
        """Boot a server, which must get one of the hosts it may use, if there are any."""
        now, able = self.operator.movers.now, self.able(project_id, hints)
        able = [each for each in able if forced in (None, each)]
        request = self.cloud.request(
            project_id=project_id, hints=hints, forced_host=forced, now=now
        )
        self.cloud.boot(request)
        (uuid,) = request.server_ids
        self.welcome(uuid, hints)
        home = self.seen.servers[uuid]["host"]
        assert home in able if able else home is None, (home, able)
        return uuid

    def able(self, project_id: str, hints: Mapping[str, Any]) -> list[str]:
        """Return the hosts that may take a request at this moment."""
        return [
            each["name"]
            for host_id, each in self.seen.hosts.items()
            if may_take(self.seen, host_id, project_id, hints, is_boot=True)
            and self._is_able(self.seen, each)
        ]

    def welcome(self, uuid: ServerId, hints: Mapping[str, Any]) -> None:
        """Check the step that booted a server, and record the pcloud that admitted it."""
        before = self.seen
        self.judge()
        if not named(hints):
            self.plain[uuid] = self._taken_in(before, uuid)

    def demand_unchanged(self) -> None:
        """Check that nothing has changed."""
        assert self.operator.world() == self.seen

    def _taken_in(self, before: World, uuid: str) -> str | None:
        """Return the pcloud that admitted a plain server; it must have taken such requests then."""
        server = self.seen.servers[uuid]
        host_id = None if server["host"] is None else before.by_name(server["host"])["id"]
        pcloud = None if host_id is None else before.pcloud_of(host_id)
        if host_id is None or pcloud is None:
            return None
        assert may_take(before, host_id, server["project_id"], {}, is_boot=True), server["host"]
        return str(pcloud["uuid"])

    def fail(self, order: WorkOrder) -> None:
        """Report that an order failed; its server may then be on the host of a retry."""
        before = self.seen
        self.operator.movers.settle(order, "No.")
        self.judge()
        server = self.seen.servers.get(order.server_uuid)
        if order.kind != "build" or server is None or server["host"] in (None, order.host):
            return
        host_id, project = before.by_name(server["host"])["id"], server["project_id"]
        hints = server["hints"]
        assert may_take(before, host_id, project, hints, is_boot=False), server["host"]

    def _is_able(self, seen: World, host: Row) -> bool:
        """Whether a host is healthy, and has room for one more server."""
        silent_s = (self.operator.movers.now - host["last_seen_at"]).total_seconds()
        is_up = silent_s <= UNLIMITED.service_down_time_s and not host["is_forced_down"]
        lines = seen.lines[host["provider_id"]]
        has_room = all(name in lines and lines[name].takes(n) for name, n in NEEDS.items())
        return bool(is_up and not host["is_disabled"] and has_room)

    def move(self, uuid: str, work: Callable[[], Any]) -> bool:
        """Move a server to a host that its request may use now; returns whether it succeeded."""
        before = self.seen
        if not self.attempt(work):
            return False
        server, was = self.seen.servers[uuid], before.servers[uuid]
        going = {server["host"]} - {was["host"], None}
        old = {each["id"] for each in before.moves}
        going |= {e["dest_host"] for e in self.seen.moves if e["id"] not in old} - {None}
        for name in going:
            host_id, project = self.seen.by_name(name)["id"], server["project_id"]
            hints = server["hints"]
            assert may_take(before, host_id, project, hints, is_boot=False), name
        return bool(going)
