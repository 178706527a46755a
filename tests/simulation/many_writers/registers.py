"""Whether one consumer's story can be true: an order of its writes that explains all reads.

A consumer is a register that is compared and set: absent, or what one write left there, at one
generation. Its story can be true if every operation can be given one moment between its begin
and its end at which it happened, so that each read tells what the last write left, and each
write was made upon what it named. Operations whose end nobody knows may happen at any moment
after their begin, or never.

The search keeps all states that are possible, and lets writes happen as late as it can
("just in time"): it branches only where a write without an answer is in the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.simulation.many_writers.history import Amounts

ABSENT = ""
"""The state of a consumer that is not there; else it is the name of the write behind it."""
NEVER = float("inf")
POSSIBLE_MAX = 20_000
"""Of so many states the search gives up, and says so."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that was done to the consumer, or seen of it.

    ``writer`` is the write that a read has seen, or ``ABSENT``. Who saw only what is held of
    one provider knows ``generation`` (``None`` if nothing is), and ``provider`` and ``units``.
    """

    name: str
    kind: Literal["write", "release", "read", "glimpse"]
    begun_s: float
    ended_s: float
    """:data:`NEVER` where the answer is not known, and nobody has seen that it happened."""
    seen: int | None = None
    amounts: Amounts | None = None
    writer: str = ABSENT
    generation: int | None = None
    provider: str = ""
    units: int = 0

    @property
    def is_write(self) -> bool:
        """Whether it changes anything."""
        return self.kind in ("write", "release")


Possible = tuple[str, frozenset[str]]
"""A state, and the names of the acts still open that have happened already."""


class Story:
    """The search; :meth:`first_impossible` is its answer."""

    def __init__(self, acts: Iterable[Act]) -> None:
        self._acts = {each.name: each for each in acts}
        self._open: dict[str, Act] = {}
        self._possible: set[Possible] = {(ABSENT, frozenset())}

    def first_impossible(self) -> Act | None:
        """The first act that cannot have been answered as it was, if there is one.

        Raises :class:`OverflowError` where there are too many possibilities to say.
        """
        for _, is_end, name in self._events():
            act = self._acts[name]
            if not is_end:
                self._open[name] = act
                self._possible = {self._settled(each) for each in self._possible}
                continue
            self._possible = self._after(act)
            del self._open[name]
            if not self._possible:
                return act
        return None

    def _events(self) -> Sequence[tuple[float, bool, str]]:
        begins = [(each.begun_s, False, each.name) for each in self._acts.values()]
        ends = [
            (each.ended_s, True, each.name) for each in self._acts.values() if each.ended_s != NEVER
        ]
        return sorted(begins + ends)

    def _after(self, act: Act) -> set[Possible]:
        """Every state that is possible once ``act`` has happened."""
        found: set[Possible] = set()
        known = set(self._possible)
        waiting = list(known)
        while waiting:
            each = waiting.pop()
            state, happened = each
            if act.name in happened:
                found.add((state, happened - {act.name}))
                continue
            for other in self._one_write_on(state, happened):
                if other not in known:
                    known.add(other)
                    waiting.append(other)
            if len(known) > POSSIBLE_MAX:
                raise OverflowError(f"too many orders are possible before {act.name}")
        return found

    def _one_write_on(self, state: str, happened: frozenset[str]) -> Iterable[Possible]:
        for act in self._open.values():
            if act.is_write and act.name not in happened and self._can(act, state):
                yield self._settled((self._left_by(act), happened | {act.name}))

    def _left_by(self, act: Act) -> str:
        return act.name if act.amounts else ABSENT

    def _can(self, act: Act, state: str) -> bool:
        """Whether a write can happen in this state."""
        if act.kind == "release":
            return state != ABSENT
        return self._generation(state) == act.seen

    def _settled(self, possible: Possible) -> Possible:
        """With all open reads done that this state explains: later is never better for them."""
        state, happened = possible
        explained = {
            act.name
            for act in self._open.values()
            if not act.is_write and act.name not in happened and self._explains(state, act)
        }
        return (state, happened | explained) if explained else possible

    def _explains(self, state: str, act: Act) -> bool:
        if act.kind == "read":
            # The empty writer is that of an absent consumer, and so is the empty state.
            return state == act.writer and self._generation(state) == act.generation
        held = 0 if state == ABSENT else (self._acts[state].amounts or {}).get(act.provider, 0)
        if act.generation is None:
            return held == 0
        return held == act.units and self._generation(state) == act.generation

    def _generation(self, state: str) -> int | None:
        if state == ABSENT:
            return None
        seen = self._acts[state].seen
        return 1 if seen is None else seen + 1
