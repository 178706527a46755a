"""The command ``audit``: tells what is broken, and what was repaired of it.

:mod:`innkeeper.engine.maintenance.audit` looks and repairs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from innkeeper.domain.auditing import Finding, Repaired
from innkeeper.domain.ids import Clock
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance.audit import look, mend

SOUND, BROKEN = 0, 1
Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of an audit."""

    is_json: bool = False
    repairs: bool = False
    is_dry: bool = False


def run(database: Database, clock: Clock, say: Say, wish: Wish) -> int:
    """Audit a database; gives the exit status. ``say`` is given the lines one by one."""
    found = look(database)
    repaired: list[Repaired] = []
    if not wish.is_json:
        _say_all(say, found)
    if wish.repairs or wish.is_dry:
        for each in mend(database, found, clock, is_dry=wish.is_dry):
            repaired.append(each)
            if not wish.is_json:
                say(f"would have {each}\n" if wish.is_dry else f"{each}\n")
        left = found if wish.is_dry else look(database)
    else:
        left = found
    if wish.is_json:
        say(_as_json(found, repaired, left))
    elif wish.repairs and not wish.is_dry:
        say(f"{len(repaired)} repairs\n")
        _say_all(say, left)
    return BROKEN if left else SOUND


def _say_all(say: Say, found: Sequence[Finding]) -> None:
    for each in found:
        say(f"{each}\n")
    say(f"{len(found)} findings\n")


def _as_json(
    found: Sequence[Finding], repaired: Sequence[Repaired], left: Sequence[Finding]
) -> str:
    return (
        json.dumps(
            {
                "findings": [each.as_mapping() for each in found],
                "repairs": [{"kind": each.kind, "text": each.text} for each in repaired],
                "left": [each.as_mapping() for each in left],
            },
            indent=2,
        )
        + "\n"
    )
