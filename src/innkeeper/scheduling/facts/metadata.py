"""Reads aggregate metadata as Nova does: each value is a comma-separated list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Metadata = Sequence[Mapping[str, str]]
"""The metadata of all aggregates of a host."""


def values_of(metadata: Metadata, key: str) -> set[str]:
    """Return all values under a key in any of the aggregates."""
    return _parts(each[key] for each in metadata if key in each)


def values_under(metadata: Metadata, prefix: str) -> set[str]:
    """Return all values under keys with this prefix in any of the aggregates."""
    return _parts(text for each in metadata for key, text in each.items() if key.startswith(prefix))


def _parts(texts: Iterable[str]) -> set[str]:
    return {part.strip() for text in texts for part in text.split(",")}
