"""What a client accepts, by its Accept header."""

from __future__ import annotations

JSON = "application/json"


def accepts(header: str | None, media_type: str) -> bool:
    """Whether an Accept header lets answers be of a media type; a missing or empty one does.

    The most exact of the ranges that match decides, and a quality of 0 excludes.
    """
    if header is None or not header.strip():
        return True
    best_exactness, best_quality = 0, 0.0
    for part in header.split(","):
        media_range, *parameters = (piece.strip().lower() for piece in part.split(";"))
        exactness = _exactness(media_range, media_type)
        if exactness > best_exactness:
            best_exactness, best_quality = exactness, _quality(parameters)
    return best_quality > 0


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
