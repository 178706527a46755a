"""Faults of whichever service leads and of its links, and how long clients then wait."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from innkeeper.domain.errors import Refusal
from innkeeper.store import leadership
from innkeeper.store.backends import catalogue
from innkeeper.store.leadership import Leader
from innkeeper.store.transactions import Store
from tests.simulation.many_writers.fleet import Fleet, forwarded, pause, proceed
from tests.simulation.many_writers.history import Kind, Outcome
from tests.simulation.many_writers.nemesis import BEGINS, Harm
from tests.simulation.many_writers.simulating import Run

SHARED = {"INNKEEPER_DATABASE_IS_SHARED": "true"}
LOOKS_AGAIN_S = 0.05
LEADS_WITHIN_S = 60.0
KILLED = "leader killed"
ANSWERS_WITHIN_S = 15.0
"""A bound for busy machines. See ``docs/operations/several-processes.md`` for what was measured."""


class Leaders:
    """Finds the leader of a fleet in its database, and harms it."""

    def __init__(self, fleet: Fleet, store: Store, relay_ports: Sequence[int] = ()) -> None:
        """``relay_ports``: the ports of the relays between the services, if there are any."""
        self._fleet = fleet
        self._store = store
        self._ports = list(map(str, relay_ports or fleet.ports))
        self._harmed = 0
        self._harmed_at = (0, 0)

    def row(self) -> Leader | None:
        """The leader's row; ``None`` if there is none, or if the database does not answer."""
        try:
            with self._store.read() as tx:
                return leadership.current(tx)
        except Refusal:
            return None

    def number(self) -> int | None:
        """Which of the fleet's services leads; ``None`` if none has since the last fault."""
        found = self.row()
        is_old = found is None or (found.term, found.beat) <= self._harmed_at
        if found is None or is_old or found.has_resigned:
            return None
        address = json.loads(found.address)
        place = Path(address["path"]).parent.name or str(address["port"])
        return self._ports.index(place) if place in self._ports else None

    def harms(self) -> list[Harm]:
        """The leader is killed, paused, or stopped as an operator stops it."""
        paused = Harm("leader paused", partial(self._harm, "pause"), self._proceed, (1.0, 6.0))
        return [*self.deaths(), paused]

    def deaths(self) -> list[Harm]:
        """The leader is killed, or stopped as an operator stops it."""
        return [
            Harm(KILLED, partial(self._harm, "kill"), self._revive, (0.0, 1.0)),
            Harm("leader stopped", partial(self._harm, "stop"), self._revive, (0.0, 1.0)),
        ]

    def wait_for_another(self, term: int) -> None:
        """Wait for a leader of a later term."""
        deadline_s = time.monotonic() + LEADS_WITHIN_S
        while (found := self.row()) is None or found.term <= term or found.has_resigned:
            assert time.monotonic() < deadline_s, "no other service leads"
            time.sleep(LOOKS_AGAIN_S)

    def _harm(self, how: str) -> None:
        deadline_s = time.monotonic() + LEADS_WITHIN_S
        while (number := self.number()) is None:
            assert time.monotonic() < deadline_s, "no service leads"
            time.sleep(LOOKS_AGAIN_S)
        self._harmed = number
        service = self._fleet.services[number]
        acts: dict[str, Callable[[], None]] = {
            "kill": service.kill,
            "stop": service.stop,
            "pause": partial(pause, service),
        }
        seen = self.row()
        acts[how]()
        if seen is not None:
            # A leader that was only paused may lead again at its next heartbeat.
            self._harmed_at = (seen.term, seen.beat if how == "pause" else sys.maxsize)

    def _revive(self) -> None:
        self._fleet.revive(self._harmed)

    def _proceed(self) -> None:
        proceed(self._fleet.services[self._harmed])


@contextmanager
def leaders_of(fleet: Fleet, url: str, relay_ports: Sequence[int] = ()) -> Iterator[Leaders]:
    """Look into the fleet's database until the block ends."""
    backend = catalogue.of_url(url)
    store = Store(backend, backend.engines(url, readers_max=2, busy_timeout_s=30.0))
    try:
        yield Leaders(fleet, store, relay_ports)
    finally:
        store.dispose()


WRITES = frozenset({Kind.CLAIM, Kind.RELEASE, Kind.RESIZE, Kind.BOOT, Kind.DELETE})


@dataclass(frozen=True, slots=True)
class Gaps:
    """How long no write was acknowledged after the leader was killed, in the worst case.

    ``whole_s`` is for all services together. ``each_s`` is for the services that were not killed,
    each by the writes that were sent to it after the kill.
    """

    whole_s: float
    each_s: float


def gaps_of(run: Run) -> Gaps | None:
    """Return the gaps after the kills of a run; ``None`` if there was none."""
    done = [e for e in run.operations if e.kind in WRITES and e.outcome is Outcome.DONE]
    whole_s, each_s = [0.0], [0.0]
    kills = run.history.noted(BEGINS + KILLED)
    for killed_s in kills:
        waits: dict[str, float] = {}
        for each in done:
            if each.begun_s >= killed_s:
                wait_s = each.ended_s - killed_s
                waits[each.entrance] = min(wait_s, waits.get(each.entrance, wait_s))
        ranked = sorted(waits.values())
        whole_s += ranked[:1]
        # The last is the killed service, which first has to start again.
        each_s += ranked[:-1]
    return Gaps(max(whole_s), max(each_s)) if kills else None


def judge(fleet: Fleet, leaders: Leaders, run: Run, within_s: float = ANSWERS_WITHIN_S) -> None:
    """Check a run in which leaders fell, and print how it went.

    After each kill, the services must have acknowledged a write ``within_s``.
    """
    count, last, gaps = forwarded(fleet), leaders.row(), gaps_of(run)
    assert run.problems == []
    assert last is not None
    told = "" if gaps is None else f", after kills {gaps.whole_s:.1f} s ({gaps.each_s:.1f} s)"
    sys.stdout.write(f"{last.term} terms, {count} forwarded in the end{told}\n")
    assert last.term > 1, "the leader never moved"
    assert count > 0, "nothing was forwarded"
    assert gaps is None or gaps.whole_s <= within_s
