"""Whatever happens to servers, and whatever their agents report, allocations are right.

After every step the audit is clean: nothing is sold twice, servers hold what their flavors take
where they are, migrations hold what was left behind, and quotas are sums. In the end everything
is given back.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from innkeeper.domain.compute import Booted, Status
from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.systems.compute.moves import completion, migrations, resizing, shelving
from innkeeper.systems.compute.servers import power
from tests.support.clouds import UNLIMITED, reported
from tests.support.moves import POWER_ACTIONS, Movers

HOSTS = ("a1", "a2", "b1")
SERVERS_MAX = 4
picks = st.integers(0, 1000)
# Failures are rare: a story in which nothing succeeds shows no later errors.
rarely = st.integers(0, 4).map(lambda number: number == 0)
flavors = st.sampled_from(("small", "big"))


class Moves(RuleBasedStateMachine):
    """Three hosts with room for four small servers each, and two agents."""

    @initialize(is_same_allowed=st.booleans())
    def begin(self, is_same_allowed: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="innkeeper-moves-"))
        settings = msgspec.structs.replace(UNLIMITED, allow_resize_to_same_host=is_same_allowed)
        reports = [reported(name) for name in HOSTS]
        self.movers = Movers(self.folder, *reports, computing=settings)
        self.servers: list[ServerId] = []
        self.every: list[ServerId] = []

    def attempt(self, work: Callable[[], Any]) -> None:
        """Do something that may be refused; a refusal must change nothing."""
        with contextlib.suppress(Refusal):
            work()
        self.movers.judge()

    def pick(self, number: int) -> ServerId:
        """One of the servers."""
        return self.servers[number % len(self.servers)]

    @precondition(lambda self: len(self.servers) < SERVERS_MAX)
    @rule(flavor=flavors)
    def boot(self, flavor: str) -> None:
        request = self.movers.cloud.request(1, flavor_id=flavor, now=self.movers.now)
        (booted,) = self.movers.cloud.boot(request)
        if isinstance(booted, Booted):
            self.servers += booted.server_ids
            self.every += booted.server_ids
        self.movers.judge()

    @precondition(lambda self: self.servers)
    @rule(number=picks, name=st.sampled_from(sorted(POWER_ACTIONS)))
    def switch(self, number: int, name: str) -> None:
        self.attempt(lambda: self.movers.act(POWER_ACTIONS[name], self.pick(number)))

    @precondition(lambda self: self.servers)
    @rule(number=picks, is_hard=st.booleans())
    def reboot(self, number: int, is_hard: bool) -> None:
        uuid = self.pick(number)
        self.attempt(lambda: self.movers.act(power.reboot, uuid, is_hard=is_hard))

    @precondition(lambda self: self.servers)
    @rule(number=picks, how=st.sampled_from(("big", "small", "cold", "live", "evacuate")))
    def move(self, number: int, how: str) -> None:
        uuid, movers = self.pick(number), self.movers
        ways: dict[str, Callable[[], Any]] = {
            "big": lambda: movers.resize(uuid, "big"),
            "small": lambda: movers.resize(uuid, "small"),
            "cold": lambda: movers.migrate(uuid),
            "live": lambda: movers.migrate_live(uuid),
            "evacuate": lambda: movers.evacuate(uuid),
        }
        self.attempt(ways[how])

    @precondition(lambda self: self.servers)
    @rule(number=picks, is_kept=st.booleans())
    def decide(self, number: int, is_kept: bool) -> None:
        work = resizing.confirm if is_kept else resizing.revert
        self.attempt(lambda: self.movers.act(work, self.pick(number)))

    @precondition(lambda self: self.servers)
    @rule(number=picks)
    def abort(self, number: int) -> None:
        uuid = self.pick(number)
        found = self.movers.cloud.read(lambda tx: migrations.in_progress(tx, uuid))
        for each in found:
            self.attempt(
                lambda each=each: self.movers.act(  # type: ignore[misc]
                    migrations.abort, uuid, each.id, in_queue=True
                )
            )

    @precondition(lambda self: self.servers)
    @rule(number=picks, how=st.sampled_from(("shelve", "keep", "offload", "unshelve")))
    def shelve(self, number: int, how: str) -> None:
        uuid, movers = self.pick(number), self.movers
        ways: dict[str, Callable[[], Any]] = {
            "shelve": lambda: movers.act(shelving.shelve, uuid, offload_time_s=0),
            "keep": lambda: movers.act(shelving.shelve, uuid, offload_time_s=-1),
            "offload": lambda: movers.act(shelving.offload, uuid),
            "unshelve": lambda: movers.unshelve(uuid),
        }
        self.attempt(ways[how])

    @precondition(lambda self: self.servers)
    @rule(number=picks, status=st.sampled_from(("ACTIVE", "ERROR")), is_meant=rarely)
    def reset(self, number: int, status: str, is_meant: bool) -> None:
        if is_meant:
            uuid = self.pick(number)
            self.attempt(lambda: self.movers.act(completion.reset_state, uuid, status=status))

    @precondition(lambda self: self.servers)
    @rule(number=picks)
    def delete(self, number: int) -> None:
        uuid = self.pick(number)
        self.movers.delete(uuid)
        self.servers.remove(uuid)
        self.movers.judge()

    @rule(number=picks, fails=rarely)
    def tell(self, number: int, fails: bool) -> None:
        waiting = self.movers.waiting()
        if waiting:
            self.movers.settle(waiting[number % len(waiting)], "No." if fails else None)

    @rule()
    def tell_all(self) -> None:
        for order in self.movers.waiting():
            self.movers.settle(order)

    @rule(silent=st.sampled_from(("", "a", "b")))
    def wait(self, silent: str) -> None:
        self.movers.wait(silent=silent)
        self.movers.sweep()

    @rule(host=st.sampled_from(HOSTS), are_there=st.booleans())
    def come_back(self, host: str, are_there: bool) -> None:
        own = tuple(uuid for uuid in self.servers if self.movers.server(uuid).host == host)
        self.movers.wait(1)
        self.movers.report(reported(host, servers=own if are_there else ()))
        self.movers.judge()

    def teardown(self) -> None:
        if not hasattr(self, "movers"):
            return
        self.movers.finish()
        for uuid in self.every:
            # This includes servers whose deletion has failed.
            if self.movers.server(uuid).status != Status.DELETED:
                self.movers.delete(uuid)
        self.movers.finish()
        # A deletion is requested again until the server is gone.
        self.movers.wait()
        self.movers.sweep()
        self.movers.finish()
        assert self.movers.usage() == (0, 0, 0)
        for name in HOSTS:
            row = self.movers.cloud.table.index_by_name[name]
            for free in self.movers.cloud.table.used.values():
                assert free[row] == 0
        self.movers.close()
        shutil.rmtree(self.folder)


TestMoves = Moves.TestCase
TestMoves.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # Each example needs a database, and to shrink a failure takes longer than to find it.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
