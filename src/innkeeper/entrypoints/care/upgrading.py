"""The commands ``db check`` and ``db upgrade``: which steps a schema lacks, and taking them.

Always true: looking changes nothing, and tells who may go on beside the schema that is to be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from innkeeper.domain.ids import Clock
from innkeeper.store import schema
from innkeeper.store.schema import Step
from innkeeper.store.transactions import Store

Say = Callable[[str], object]
DONE, STEPS_LEFT, UNUSABLE = 0, 1, 2


def check(store: Store, say: Say) -> int:
    """Tell what an upgrade would do; 1 if anything, and 2 if this program is too old."""
    with store.read() as tx:
        current = schema.revision(tx)
        is_usable = schema.is_usable(tx)
    newest = schema.newest_revision()
    if current == newest:
        say(f"The database is at revision {current}, and so is this program.\n")
        return DONE
    if current is not None and current not in {each.revision for each in schema.steps()}:
        say(f"The database is at revision {current}, this program knows {newest} at most.\n")
        say("It may work on it.\n" if is_usable else "It may not work on it.\n")
        return DONE if is_usable else UNUSABLE
    say(f"The database is at revision {current or 'none'}, and this program at {newest}.\n")
    _tell(schema.steps_from(current), current, say)
    return STEPS_LEFT


def upgrade(store: Store, clock: Clock, say: Say) -> int:
    """Bring the schema up, and say what was done."""
    with store.read() as tx:
        before = schema.revision(tx)
    if schema.upgrade(store, clock()):
        _tell(schema.steps_from(before), before, say)
        say(f"The database is brought up to revision {schema.newest_revision()}.\n")
    else:
        with store.read() as tx:
            say(f"The database is already at revision {schema.revision(tx)}.\n")
    return DONE


def _tell(steps: Sequence[Step], current: str | None, say: Say) -> None:
    for each in steps:
        say(f"  {each.revision}: {each.summary}\n")
    if current is not None:
        since = schema.compatible_since(list(steps))
        who = "May" if since <= current else "Must not"
        say(f"{who} run beside it: programs that are at revision {current}.\n")
