"""What aggregates say, read as the field reads it: a value is a list, parted by commas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Metadata = Sequence[Mapping[str, str]]
"""What is said of all aggregates that a host is in."""


def values_of(metadata: Metadata, key: str) -> set[str]:
    """All values under a key, of whichever aggregate."""
    return {part for each in metadata if key in each for part in _parts(each[key])}


def values_under(metadata: Metadata, prefix: str) -> set[str]:
    """All values under keys that begin so, of whichever aggregate."""
    return {part for text in _texts(metadata, prefix) for part in _parts(text)}


def _texts(metadata: Metadata, prefix: str) -> Iterable[str]:
    return (text for each in metadata for key, text in each.items() if key.startswith(prefix))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]
