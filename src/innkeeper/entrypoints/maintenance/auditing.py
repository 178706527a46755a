"""The command ``audit``, which prints findings and repairs.

The module :mod:`innkeeper.engine.maintenance.audit` finds and repairs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from innkeeper.domain.auditing import Finding, Repaired
from innkeeper.domain.ids import Clock
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance.audit import look, repair

SOUND, BROKEN = 0, 1
Say = Callable[[str], object]


class RemoteAudit(Protocol):
    """The part of an audit that asks other services, such as child zones or pods."""

    def look(self) -> list[Finding]:
        """Ask the other services, and return all findings."""

    def repair(
        self, found: Sequence[Finding], now: datetime, *, is_dry: bool = False
    ) -> Iterator[Repaired]:
        """Repair findings of the last :meth:`look`, and yield each repair."""


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """The options of an audit."""

    is_json: bool = False
    repairs: bool = False
    is_dry: bool = False


def run(
    database: Database,
    clock: Clock,
    say: Say,
    options: AuditOptions,
    others: Sequence[RemoteAudit] = (),
) -> int:
    """Audit a database, and return the exit status. ``say`` prints a line.

    ``others`` has the parts of the audit that ask other services.
    """

    def look_everywhere() -> list[Finding]:
        return look(database) + [found for each in others for found in each.look()]

    def repairs(found: Sequence[Finding]) -> Iterator[Repaired]:
        yield from repair(database, found, clock, is_dry=options.is_dry)
        for each in others:
            yield from each.repair(found, clock(), is_dry=options.is_dry)

    found = look_everywhere()
    repaired: list[Repaired] = []
    if not options.is_json:
        _say_all(say, found)
    remaining = found
    if options.repairs or options.is_dry:
        for each in repairs(found):
            repaired.append(each)
            if not options.is_json:
                say(f"would have {each}\n" if options.is_dry else f"{each}\n")
        remaining = found if options.is_dry else look_everywhere()
    if options.is_json:
        content = {
            "findings": [each.as_mapping() for each in found],
            "repairs": [{"kind": each.kind, "text": each.text} for each in repaired],
            "left": [each.as_mapping() for each in remaining],
        }
        say(json.dumps(content, indent=2) + "\n")
    elif options.repairs and not options.is_dry:
        say(f"{len(repaired)} repairs\n")
        _say_all(say, remaining)
    return BROKEN if remaining else SOUND


def _say_all(say: Say, found: Sequence[Finding]) -> None:
    for each in found:
        say(f"{each}\n")
    say(f"{len(found)} findings\n")
