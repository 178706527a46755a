"""Clients that place as clouds do: they boot, or query candidates and claim one.

Always true: every conflict with another writer is counted: by the client whose request failed, or
by the service, if the service retried the claim.
"""

from __future__ import annotations

import itertools
import threading
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random

from tests.simulation.many_writers.asking import FLAVOR, PER_SERVER, SERVERS
from tests.simulation.many_writers.doors import Door
from tests.simulation.many_writers.fleet import must

CANDIDATES = 20
"""The limit of a candidates query, of which the client claims one at random."""
CHOOSES = 0.25
"""The share of placements that query candidates, instead of a boot."""
PATIENCE_S = 60.0
"""No process fails here, so even a slow request gets an answer."""
CONFLICT = 409
OVERTAKEN = ("write_overtaken", "batch_repeated", "batch_tried_again")
"""The log event of a repeated claim."""


class Placer:
    """One client, which places one server or consumer after the other."""

    def __init__(self, number: int, ports: Sequence[int], count: int) -> None:
        self._dice = Random(number)  # noqa: S311 - a choice, no secret
        self._door = Door(ports, self._dice, PATIENCE_S)
        self._count = count
        self._names = (f"placer-{number}-{n}" for n in itertools.count())
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.outcomes: Counter[int] = Counter()
        """Statuses of claims."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def _run(self) -> None:
        with closing(self._door):
            for _ in range(self._count):
                status = self._claim() if self._dice.random() < CHOOSES else self._boot()
                self.outcomes[status] += 1

    def _boot(self) -> int:
        body = {"name": next(self._names), "flavorRef": FLAVOR, "imageRef": ""}
        answer = self._door.call("POST", SERVERS, {"server": {**body, "networks": "none"}})
        return answer.status

    def _claim(self) -> int:
        wanted = ",".join(f"{name}:{amount}" for name, amount in PER_SERVER.items())
        path = f"/placement/allocation_candidates?resources={wanted}&limit={CANDIDATES}"
        found = must(self._door.call("GET", path))["allocation_requests"]
        body = {
            "allocations": self._dice.choice(found)["allocations"],
            "project_id": "simulation",
            "user_id": next(self._names),
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        path = f"/placement/allocations/{uuid.uuid4()}"
        return self._door.call("PUT", path, body).status


def place(ports: Sequence[int], clients: int, count: int) -> Counter[int]:
    """Let this many clients place this many each; gives the statuses of their claims."""
    placers = [Placer(number, ports, count) for number in range(clients)]
    for each in placers:
        each.start()
    for each in placers:
        each.join()
    return sum((each.outcomes for each in placers), Counter())


def overtaken(logs: Sequence[Path]) -> int:
    """How often services have repeated a claim by themselves."""
    texts = [each.read_text(errors="replace") for each in logs]
    return sum(text.count(f"event={word} ") for text in texts for word in OVERTAKEN)
