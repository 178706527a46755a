"""Looks for what is broken in a whole database, and repairs what can be repaired safely.

Always true: looking writes nothing. A repair looks again, in its own short transaction, which
queues as every write does; so a service may run beside it. What is tried out is done and undone
in the same way, and tells exactly what would be done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from innkeeper.domain.auditing import Finding, Repaired
from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import Clock
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance.invariants import AT_ONCE, REPAIRS, findings
from innkeeper.store import soundness

AT_ONCE_MAX = 100
"""Findings that are repaired in one transaction, for which all other writers wait."""
ROUNDS_MAX = 3
"""What was repaired can show what else is broken, as a consumer that holds nothing any more."""


class _Undone(Exception):
    """Ends a transaction that was only tried."""


def look(database: Database) -> list[Finding]:
    """All that is broken at one moment."""
    with database.store.read() as tx:
        soundness.prefer_hash_joins(tx)
        return findings(tx)


def repair(
    database: Database, found: Sequence[Finding], clock: Clock, *, is_dry: bool = False
) -> Iterator[Repaired]:
    """Repair what can be, and tell of each thing when it is done."""
    for _ in range(1 if is_dry else ROUNDS_MAX):
        done = 0
        for each in _mend_once(database, found, clock, is_dry=is_dry):
            done += 1
            yield each
        if not done:
            return
        found = look(database)


def _mend_once(
    database: Database, found: Sequence[Finding], clock: Clock, *, is_dry: bool
) -> Iterator[Repaired]:
    # In the order of the repairs: consumers are there again before somebody counts on them.
    for kind, repair in REPAIRS.items():
        keys = list(dict.fromkeys(e.key for e in found if e.invariant.kind == kind))
        at_once = AT_ONCE.get(kind, AT_ONCE_MAX)
        for start in range(0, len(keys), at_once):
            part = keys[start : start + at_once]
            told: list[str] = []
            # A refusal: somebody came between; or something cannot be read. It is found again,
            # and told at the end.
            with suppress(_Undone, Refusal, *soundness.UNREAD), database.store.write() as tx:
                told = repair(tx, part, clock())
                if is_dry:
                    raise _Undone
            yield from (Repaired(kind, text) for text in told)
