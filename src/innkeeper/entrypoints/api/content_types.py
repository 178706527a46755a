"""Content negotiation by the Accept header."""

from __future__ import annotations

JSON = "application/json"


def accepts(header: str | None, media_type: str) -> bool:
    """Return whether an Accept header allows a media type.

    A missing or malformed header allows every type. If several ranges match, the most specific
    range decides. A quality of 0 excludes the type.
    """
    return quality(header, media_type) > 0


def quality(header: str | None, media_type: str) -> float:
    """Return the quality of a media type in an Accept header, from 0 to 1."""
    if header is None or not header.strip():
        return 1.0
    ranges = [part.strip().lower().split(";") for part in header.split(",")]
    if any("/" not in media_range and media_range != "*" for media_range, *_ in ranges):
        return 1.0
    best_specificity, best_quality = 0, 0.0
    for media_range, *parameters in ranges:
        specificity = _specificity(media_range.strip(), media_type)
        if specificity > best_specificity:
            best_specificity, best_quality = specificity, _quality(parameters)
    return best_quality


def _specificity(media_range: str, media_type: str) -> int:
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
