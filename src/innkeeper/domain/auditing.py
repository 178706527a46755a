"""What an audit finds: a broken invariant, said so that a person can act on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Invariant:
    """Something that is always true of a room, and what follows where it is not.

    ``kind`` names it on the command line and in documents. ``advice`` is what a person does
    about a finding; ``repair`` what ``audit --repair`` does, where that is safe.
    """

    room: str
    kind: str
    rule: str
    advice: str
    repair: str | None = None

    def broken(self, key: object, text: str) -> Finding:
        """A finding. ``key`` names what it is about, and is what a repair is given."""
        return Finding(self, str(key), text)


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken invariant. ``text`` tells where and how."""

    invariant: Invariant
    key: str
    text: str

    @property
    def rule(self) -> str:
        """What should be true."""
        return self.invariant.rule

    @property
    def advice(self) -> str:
        """What to do, in one sentence."""
        if self.invariant.repair is None:
            return self.invariant.advice
        return f"`innkeeper audit --repair` {self.invariant.repair}."

    def __str__(self) -> str:
        return f"{self.invariant.room}: {self.invariant.kind}: {self.text}. {self.advice}"

    def as_mapping(self) -> Mapping[str, str | None]:
        """For programs."""
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
    """Something that was put right."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"repaired {self.kind}: {self.text}"
