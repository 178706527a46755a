"""Errors carry a word that programs can tell them apart by."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(1, 23)
SUMMARY = "Errors have a `code`."
# Errors do not pass the steps; their form asks the function below.
EDGES: tuple[Edge, ...] = ()


def shows_code(version: tuple[int, int] | None) -> bool:
    """Whether an error's form has a code; it has none while no version was agreed on."""
    return version is not None and version >= VERSION
