"""What an audit finds: a broken invariant, said so that a person can act on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken invariant. ``rule`` names it in a few words; ``text`` tells where and how."""

    room: str
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.room}: {self.rule}: {self.text}"
