"""Microversions of this service's APIs, and of the APIs that this service calls."""

from __future__ import annotations

from typing import NamedTuple


class Version(NamedTuple):
    """A microversion. Versions are compared as numbers: 1.10 is newer than 1.9."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"
