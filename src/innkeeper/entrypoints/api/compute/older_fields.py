"""Answers that remember what only older microversions show."""

from __future__ import annotations

from typing import Any


class Remembering(dict[str, Any]):
    """A body's mapping, with ``older``: values that a step on the way down may bring back.

    Nothing of ``older`` is sent unless a microversion's step puts it into the mapping.
    """

    def __init__(self, shown: dict[str, Any], older: dict[str, Any]) -> None:
        super().__init__(shown)
        self.older = older
