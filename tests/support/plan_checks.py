"""Plans servers in a cloud with dedicated hosts, boots the entries later, and checks both steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.compute import Booted
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zones import Planned
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import dry_run
from innkeeper.systems.compute.boot.entries import EntryStale, EntryUsed
from tests.support.candidate_checks import CandidateChecks

COUNT = 3
"""The number of servers in one plan."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry of a plan, and the request for which it was made."""

    planned: Planned
    project_id: str
    hints: Mapping[str, Any]


class Planner:
    """Keeps the entries of plans, and in ``booted`` those that were carried out."""

    def __init__(self, checks: CandidateChecks) -> None:
        self.kept: list[Kept] = []
        self.made: set[ServerId] = set()
        self._checks = checks
        self._cloud = checks.cloud

    def plan(self, project_id: str, hints: Mapping[str, Any]) -> None:
        """Plan servers on hosts that they may use; the plan changes nothing."""
        now = self._checks.operator.movers.now
        request = self._cloud.request(1, COUNT, project_id=project_id, hints=hints, now=now)

        def made(tx: Tx, context: Any) -> tuple[Planned, ...]:
            return dry_run.plan(tx, context, request).servers

        (answer,) = self._cloud.carry_out(("decide", (made, now)))
        assert isinstance(answer, tuple), answer
        self._checks.demand_unchanged()
        able = self._checks.able(project_id, hints)
        homes = {each.destination.host for each in answer}
        assert homes <= set(able) and bool(homes) == bool(able), (homes, able)
        self.kept += [Kept(each, project_id, hints) for each in answer]

    def carry_out(self, kept: Kept) -> None:
        """Boot a planned entry, which must still be valid, and can be used only once."""
        checks, where = self._checks, kept.planned.destination
        able = checks.able(kept.project_id, kept.hints)
        request = self._cloud.request(
            project_id=kept.project_id,
            hints=kept.hints,
            server_ids=(where.server_id,),
            destination=where,
            now=checks.operator.movers.now,
        )
        (answer,) = self._cloud.boot(request)
        if where.server_id not in self.made and where.host in able:
            assert isinstance(answer, Booted) and answer.fault is None, answer
            self.made.add(where.server_id)
            checks.welcome(where.server_id, kept.hints)
            assert checks.seen.servers[where.server_id]["host"] == where.host
            return
        assert isinstance(answer, EntryUsed if where.server_id in self.made else EntryStale), answer
        checks.demand_unchanged()
