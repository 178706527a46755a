"""What a client accepts, by its Accept header."""

from __future__ import annotations

JSON = "application/json"


def accepts(header: str | None, media_type: str) -> bool:
    """Whether an Accept header lets answers be of a media type; a missing or empty one does,
    and so does one that is none.

    The most exact of the ranges that match decides, and a quality of 0 excludes.
    """
    return quality(header, media_type) > 0


def quality(header: str | None, media_type: str) -> float:
    """How much an Accept header wants a media type, from 0 (not at all) to 1."""
    if header is None or not header.strip():
        return 1.0
    ranges = [part.strip().lower().split(";") for part in header.split(",")]
    if any("/" not in media_range and media_range != "*" for media_range, *_ in ranges):
        return 1.0
    best_exactness, best_quality = 0, 0.0
    for media_range, *parameters in ranges:
        exactness = _exactness(media_range.strip(), media_type)
        if exactness > best_exactness:
            best_exactness, best_quality = exactness, _quality(parameters)
    return best_quality


def _exactness(media_range: str, media_type: str) -> int:
    if media_range == media_type:
        return 3
    if media_range == media_type.partition("/")[0] + "/*":
        return 2
    return 1 if media_range in ("*/*", "*") else 0


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
