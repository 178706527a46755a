"""Whether one consumer's history is linearizable: an order of writes that explains all reads.

A consumer is a compare-and-set register: absent, or with the value of one write at one
generation. Its history is linearizable if every operation can be assigned one moment between
its begin and its end. Each read must then return the last write's value, and each write must
meet the generation that it expected. An operation without an answer may take effect at any
moment after its begin, or never.

The search keeps all possible states, and applies writes as late as it can ("just in time"):
it branches only where a write without an answer can interfere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.simulation.many_writers.history import Amounts

ABSENT = ""
"""The state of an absent consumer. Any other state is the name of the last write."""
NEVER = float("inf")
POSSIBLE_MAX = 20_000
"""The search gives up at this number of states, and reports it."""


@dataclass(frozen=True, slots=True)
class Act:
    """A write of the consumer, or a read of it.

    ``writer`` is the write that a read has seen, or ``ABSENT``. A read of one provider's
    allocations knows only ``generation`` (``None`` without allocations), ``provider`` and
    ``units``.
    """

    name: str
    kind: Literal["write", "release", "read", "glimpse"]
    begun_s: float
    ended_s: float
    """:data:`NEVER` if the answer is unknown, and no read has seen its effect."""
    seen: int | None = None
    amounts: Amounts | None = None
    writer: str = ABSENT
    generation: int | None = None
    provider: str = ""
    units: int = 0

    @property
    def is_write(self) -> bool:
        """Whether it is a write."""
        return self.kind in ("write", "release")


Possible = tuple[str, frozenset[str]]
"""A state, and the names of the open acts that have taken effect."""


class Story:
    """The search; :meth:`first_impossible` gives the result."""

    def __init__(self, acts: Iterable[Act]) -> None:
        self._acts = {each.name: each for each in acts}
        self._open: dict[str, Act] = {}
        self._possible: set[Possible] = {(ABSENT, frozenset())}

    def first_impossible(self) -> Act | None:
        """The first act whose answer is impossible, if there is one.

        Raises :class:`OverflowError` if there are too many possible states.
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
        """Every possible state after ``act`` has taken effect."""
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
        """Whether a write can take effect in this state."""
        if act.kind == "release":
            return state != ABSENT
        return self._generation(state) == act.seen

    def _settled(self, possible: Possible) -> Possible:
        """The states after all open reads that they explain; a later read never explains more."""
        state, happened = possible
        explained = {
            act.name
            for act in self._open.values()
            if not act.is_write and act.name not in happened and self._explains(state, act)
        }
        return (state, happened | explained) if explained else possible

    def _explains(self, state: str, act: Act) -> bool:
        if act.kind == "read":
            # A read of an absent consumer has the empty writer, and so has the empty state.
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
