"""The output and the exit statuses of the commands ``db check`` and ``db upgrade``.

Always true: a check changes nothing. It prints whether programs for the current schema can also use
the new schema.
"""

from __future__ import annotations

from collections.abc import Callable

from innkeeper.domain.ids import Clock
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance.upgrade import SchemaState, bring_up, look

Say = Callable[[str], object]
DONE, STEPS_LEFT, UNUSABLE = 0, 1, 2


def check(database: Database, say: Say) -> int:
    """Print what an upgrade would do, and return the exit status.

    The status is 1 if steps are missing, and 2 if this program is too old for the database.
    """
    found = look(database)
    current, newest = found.current, found.newest
    if current == newest:
        say(f"The database and this program are at revision {current}.\n")
        return DONE
    if not found.is_known:
        say(f"The database is at revision {current}, but this program knows only up to {newest}.\n")
        say("It can use the database.\n" if found.is_usable else "It cannot use the database.\n")
        return DONE if found.is_usable else UNUSABLE
    say(f"The database is at revision {current or 'none'}, and this program needs {newest}.\n")
    _print_steps(found, say)
    return STEPS_LEFT


def upgrade(database: Database, clock: Clock, say: Say) -> int:
    """Upgrade the schema, and print what was done."""
    before = look(database)
    if bring_up(database, clock):
        _print_steps(before, say)
        say(f"The database was upgraded to revision {before.newest}.\n")
    else:
        say(f"The database is already at revision {look(database).current}.\n")
    return DONE


def _print_steps(before: SchemaState, say: Say) -> None:
    for each in before.missing:
        say(f"  {each.revision}: {each.summary}\n")
    if before.current is not None and before.since is not None:
        may = "may keep" if before.since <= before.current else "must not keep"
        say(f"Programs at revision {before.current} {may} running after the upgrade.\n")
