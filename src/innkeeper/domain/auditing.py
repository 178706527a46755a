"""Types for invariants, and for the findings of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Invariant:
    """A rule that the stored data must always follow.

    ``kind`` is its name on the command line and in documents. ``advice`` says what the operator
    should do about a finding. ``repair`` says what ``audit --repair`` does, if a repair is safe.
    """

    room: str
    kind: str
    rule: str
    advice: str
    repair: str | None = None

    def broken(self, key: object, text: str) -> Finding:
        """Create a finding about this rule. ``key`` identifies the object for the repair."""
        return Finding(self, str(key), text)


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation of an invariant.

    ``text`` describes the violation, ``key`` identifies the object.
    """

    invariant: Invariant
    key: str
    text: str

    @property
    def rule(self) -> str:
        """The rule that is broken."""
        return self.invariant.rule

    @property
    def advice(self) -> str:
        """What the operator should do, in one sentence."""
        if self.invariant.repair is None:
            return self.invariant.advice
        return f"`innkeeper audit --repair` {self.invariant.repair}."

    def __str__(self) -> str:
        return f"{self.invariant.room}: {self.invariant.kind}: {self.text}. {self.advice}"

    def as_mapping(self) -> Mapping[str, str | None]:
        """Return the finding as a JSON object."""
        return {
            "room": self.invariant.room,
            "kind": self.invariant.kind,
            "rule": self.invariant.rule,
            "about": self.key,
            "text": self.text,
            "advice": self.advice,
            "repair": self.invariant.repair,
        }


@dataclass(frozen=True, slots=True)
class Repaired:
    """A finding that was repaired."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"repaired {self.kind}: {self.text}"
