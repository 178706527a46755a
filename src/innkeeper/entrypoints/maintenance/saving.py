"""The commands ``db backup`` and ``db restore``: what they say, and their exit statuses.

:mod:`innkeeper.engine.maintenance.backup` saves databases and puts them back.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from innkeeper.engine.maintenance import backup as backups
from innkeeper.engine.maintenance.backup import Checked

Say = Callable[[str], object]
DONE, BROKEN, REFUSED = 0, 1, 2


def backup(url: str, target: Path, say: Say, *, may_overwrite: bool) -> int:
    """Save a database into a file; 1 if its audit has findings, and 2 if it was not saved.

    Raises :class:`Conflict` for a database that is damaged, or no database.
    """
    source = backups.file_of(url)
    if source is None:
        return _tell_how(url, target, say)
    telling = _Telling(say)
    backups.save(source, target, telling, may_overwrite=may_overwrite)
    say(f"Saved {source} as {target} ({target.stat().st_size} bytes).\n")
    return telling.status


def restore(url: str, source: Path, say: Say, now: datetime) -> int:
    """Put a saved database back; 1 if its audit has findings.

    Raises :class:`Conflict` for a file that is damaged, or of a newer program, and
    :class:`InUse` while the database is used.
    """
    target = backups.file_of(url)
    if target is None:
        return _tell_how(url, source, say)
    telling = _Telling(say)
    kept = backups.put_back(source, target, now, telling)
    say(f"Restored {target} from {source}.\n")
    if kept is not None:
        say(f"What was there is in {kept}.\n")
    return telling.status


class _Telling:
    """Says what was found in a copy, and remembers whether there was anything."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.status = DONE

    def __call__(self, checked: Checked) -> None:
        if checked.findings is None:
            self._say(
                f"It is at revision {checked.revision}, and not audited before it is brought up.\n"
            )
            return
        for each in checked.findings:
            self._say(f"{each}\n")
        self._say(f"{len(checked.findings)} findings\n")
        if checked.findings:
            self.status = BROKEN


def _tell_how(url: str, file: Path, say: Say) -> int:
    told = backups.programs_of(url, file)
    say(
        "This database has programs of its own for that. To save it while the service runs:\n"
        f"  {told.save}\n"
        "To put it back, into an empty database or over this one, with all services stopped:\n"
        f"  {told.restore}\n"
        "To save the whole server, so that it can be brought to any moment with its log:\n"
        f"  {told.whole}\n"
        "Afterwards: innkeeper audit\n"
    )
    return REFUSED
