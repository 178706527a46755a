"""Microversions, as every API here and every API that is called numbers its changes."""

from __future__ import annotations

from typing import NamedTuple


class Version(NamedTuple):
    """A microversion; compares as numbers do, so 1.10 is after 1.9."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"
