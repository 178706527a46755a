"""Checks the invariants of a whole database, and repairs violations if a repair is safe.

Always true: a check writes nothing. Each repair checks again in its own short transaction. Like
every write, this transaction waits for its turn, so services may run during a repair. A dry run
makes the same changes as a repair, and rolls them back. So it reports exactly what a repair would
do.
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
"""The maximum number of findings repaired in one transaction. All other writers wait for the
transaction."""
ROUNDS_MAX = 3
"""The maximum number of rounds of repairs. A repair can reveal further findings, such as a consumer
that has no allocations any more."""


class Undone(Exception):
    """Rolls back the transaction of a dry run."""


def look(database: Database) -> list[Finding]:
    """Check one consistent snapshot, and return all findings."""
    with database.store.read() as tx:
        soundness.prefer_hash_joins(tx)
        return findings(tx)


def repair(
    database: Database, found: Sequence[Finding], clock: Clock, *, is_dry: bool = False
) -> Iterator[Repaired]:
    """Repair the findings that can be repaired. Yield each repair once it is done."""
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
    # The order of REPAIRS matters: consumers are restored before repairs that depend on them.
    for kind, repair in REPAIRS.items():
        keys = list(dict.fromkeys(e.key for e in found if e.invariant.kind == kind))
        at_once = AT_ONCE.get(kind, AT_ONCE_MAX)
        for start in range(0, len(keys), at_once):
            part = keys[start : start + at_once]
            told: list[str] = []
            # After a conflict with another writer, or if a row cannot be read, the findings remain.
            # The last check reports them again.
            with suppress(Undone, Refusal, *soundness.UNREAD), database.store.write() as tx:
                told = repair(tx, part, clock())
                if is_dry:
                    raise Undone
            yield from (Repaired(kind, text) for text in told)
