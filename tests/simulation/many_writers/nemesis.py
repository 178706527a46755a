"""Random faults: processes and database servers are killed, paused and restored.

Always true: at most one fault is active among the services, and one in the database; at the
end all of them are repaired.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from tests.simulation.many_writers.fleet import Fleet, pause, proceed
from tests.simulation.many_writers.history import History

SOON_S = (0.5, 2.5)
LATER_S = (2.0, 5.0)
"""The time without faults between two of them."""
BEGINS = "begins: "


@dataclass(frozen=True, slots=True)
class Harm:
    """One fault, its duration, and its repair."""

    name: str
    begin: Callable[[], None]
    reread: Callable[[], None]
    lasts_s: tuple[float, float]


def harms_of_services(fleet: Fleet) -> list[Harm]:
    """Each process can be killed or paused."""
    found: list[Harm] = []
    for number, each in enumerate(fleet.services):
        name = f"service {number}"
        back = partial(fleet.revive, number)
        found += [
            Harm(f"{name} killed", each.kill, back, (0.0, 1.0)),
            Harm(f"{name} paused", partial(pause, each), partial(proceed, each), (1.0, 4.0)),
        ]
    return found


class Nemesis:
    """A thread that injects one fault after the other until it is stopped."""

    def __init__(
        self, harms: Sequence[Harm], calm_s: tuple[float, float], dice: Random, history: History
    ) -> None:
        self._harms = harms
        self._calm_s = calm_s
        self._dice = dice
        self._history = history
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nemesis", daemon=True)
        self._error: BaseException | None = None
        self.done = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, with everything repaired; raises a failed repair."""
        self._is_over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._is_over.wait(self._dice.uniform(*self._calm_s)):
                self._harm(self._dice.choice(self._harms))
        except Exception as error:
            self._error = error

    def _harm(self, harm: Harm) -> None:
        self._history.note(time.monotonic(), f"{BEGINS}{harm.name}")
        harm.begin()
        try:
            self._is_over.wait(self._dice.uniform(*harm.lasts_s))
        finally:
            harm.reread()
        self._history.note(time.monotonic(), f"ends: {harm.name}")
        self.done += 1
