"""The changes that microversions made to all answers."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.routing import Answer, Call

CODES_SINCE = Version(1, 23)


def shows_code(version: tuple[int, int] | None) -> bool:
    """Return whether errors have a code at this version. ``None`` stands for an invalid version."""
    return version is not None and version >= CODES_SINCE


def _undate(answer: Answer, _call: Call) -> None:
    answer.headers.pop("last-modified", None)
    answer.headers.pop("cache-control", None)


STEPS = (
    Step(
        Version(1, 15),
        "Answers have the headers `last-modified` and `cache-control: no-cache`.",
        (Edge("*", "*", down=_undate),),
    ),
    # Edges do not apply to errors. ``placement.faults`` calls ``shows_code`` instead.
    Step(CODES_SINCE, "Errors have a `code`."),
)
