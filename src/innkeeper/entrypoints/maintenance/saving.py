"""The output and the exit statuses of the commands ``db backup`` and ``db restore``.

The module :mod:`innkeeper.engine.maintenance.backup` makes and restores backups.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from innkeeper.engine.maintenance import backup as backups
from innkeeper.engine.maintenance.backup import Checked, Programs

Say = Callable[[str], object]
DONE, BROKEN, REFUSED = 0, 1, 2


def backup(url: str, target: Path, say: Say, *, may_overwrite: bool) -> int:
    """Back up a database to a file, and return the exit status.

    The status is 1 if the audit of the copy has findings. It is 2 if the database's server has its
    own backup programs. Raises :class:`Conflict` if the file is damaged or not a database.
    """
    source = backups.way_of(url, target)
    if not isinstance(source, Path):
        return _explain(source, say)
    report = _CheckReport(say)
    backups.save(source, target, report, may_overwrite=may_overwrite)
    say(f"Saved {source} as {target} ({target.stat().st_size} bytes).\n")
    return report.status


def restore(url: str, source: Path, say: Say, now: datetime) -> int:
    """Restore a backup. Returns an exit status with the same meaning as in :func:`backup`.

    Raises :class:`Conflict` if the file is damaged or from a newer release, and :class:`InUse` if
    the database is in use.
    """
    target = backups.way_of(url, source)
    if not isinstance(target, Path):
        return _explain(target, say)
    report = _CheckReport(say)
    kept = backups.put_back(source, target, now, report)
    say(f"Restored {target} from {source}.\n")
    if kept is not None:
        say(f"The previous database is in {kept}.\n")
    return report.status


class _CheckReport:
    """Prints the findings of the audit of a copy, and keeps the exit status."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.status = DONE

    def __call__(self, checked: Checked) -> None:
        if checked.findings is None:
            self._say(
                f"The copy is at revision {checked.revision}. It can be audited after an upgrade.\n"
            )
            return
        for each in checked.findings:
            self._say(f"{each}\n")
        self._say(f"{len(checked.findings)} findings\n")
        if checked.findings:
            self.status = BROKEN


def _explain(programs: Programs, say: Say) -> int:
    say(
        "This database has its own backup programs. To back it up while the service runs:\n"
        f"  {programs.save}\n"
        "To restore it, into an empty database or over this one, with all services stopped:\n"
        f"  {programs.restore}\n"
        "To back up the whole server, for recovery to any point in time with its log:\n"
        f"  {programs.whole}\n"
        "Afterwards: innkeeper audit\n"
    )
    return REFUSED
