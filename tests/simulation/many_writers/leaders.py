"""Faults of whichever service leads, and how long clients then wait for an answer."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from innkeeper.store import leadership
from innkeeper.store.backends import catalogue
from innkeeper.store.leadership import Leader
from innkeeper.store.transactions import Store
from tests.simulation.many_writers.fleet import Fleet, pause, proceed
from tests.simulation.many_writers.history import Operation, Outcome
from tests.simulation.many_writers.nemesis import Harm

SHARED = {"INNKEEPER_DATABASE_IS_SHARED": "true"}
LOOKS_AGAIN_S = 0.05
LEADS_WITHIN_S = 30.0


class Leaders:
    """Finds the leader of a fleet in its database, and harms it."""

    def __init__(self, fleet: Fleet, store: Store) -> None:
        self._fleet = fleet
        self._store = store
        self._harmed = 0

    def row(self) -> Leader | None:
        """The leader's row."""
        with self._store.read() as tx:
            return leadership.current(tx)

    def number(self) -> int | None:
        """Which of the fleet's services leads; ``None`` if none of them does."""
        found = self.row()
        if found is None or found.has_resigned:
            return None
        place = Path(json.loads(found.address)["path"]).parent.name
        ports = list(map(str, self._fleet.ports))
        return ports.index(place) if place in ports else None

    def harms(self) -> list[Harm]:
        """The leader is killed, paused, or stopped as an operator stops it."""
        return [
            Harm("leader killed", partial(self._harm, "kill"), self._revive, (0.0, 1.0)),
            Harm("leader paused", partial(self._harm, "pause"), self._proceed, (1.0, 6.0)),
            Harm("leader stopped", partial(self._harm, "stop"), self._revive, (0.0, 1.0)),
        ]

    def kills(self) -> list[Harm]:
        """The leader is killed."""
        return self.harms()[:1]

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
        acts[how]()

    def _revive(self) -> None:
        self._fleet.revive(self._harmed)

    def _proceed(self) -> None:
        proceed(self._fleet.services[self._harmed])


@contextmanager
def leaders_of(fleet: Fleet, url: str) -> Iterator[Leaders]:
    """Look into the fleet's database until the block ends."""
    backend = catalogue.of_url(url)
    store = Store(backend, backend.engines(url, readers_max=2, busy_timeout_s=30.0))
    try:
        yield Leaders(fleet, store)
    finally:
        store.dispose()


def longest_gap_s(operations: Sequence[Operation]) -> float:
    """The longest time in which no write of any client was acknowledged."""
    ends = sorted(each.ended_s for each in operations if each.outcome is Outcome.DONE)
    return max(later - earlier for earlier, later in itertools.pairwise(ends))
