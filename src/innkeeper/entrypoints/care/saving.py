"""The commands ``db backup`` and ``db restore``.

Always true: a backup is checked before it has its name, and a restored database after it was
put back; what was there before a restore is kept beside it. Only SQLite needs help with that:
for other databases it is told what to run.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from innkeeper.domain.errors import Conflict
from innkeeper.entrypoints.care import auditing
from innkeeper.store import copying, dumping, schema, soundness
from innkeeper.store.backends import catalogue
from innkeeper.store.transactions import Store

Say = Callable[[str], object]
DONE, BROKEN, REFUSED = 0, 1, 2
READERS = 1
WAIT_S = 5.0


def backup(url: str, target: Path, say: Say, *, may_overwrite: bool) -> int:
    """Save a database into a file; 1 if its audit has findings, and 2 if it was not saved.

    Raises :class:`Conflict` for a database that is damaged, or no database.
    """
    source = _file_of(url)
    if source is None:
        return _tell_how(url, target, say)
    if not source.exists():
        raise Conflict(f"There is no database at {source}.")
    if target.exists() and not may_overwrite:
        raise Conflict(f"{target} is there already; --force overwrites it.")
    if target.exists() and os.path.samefile(source, target):
        raise Conflict(f"{target} is the database itself.")
    if target.exists():
        copying.demand_earlier(target)
    found: list[int] = []

    def look(copy: Path) -> None:
        found.append(_audit(copy, say))

    with _in_words(source):
        copying.save(source, target, look)
    say(f"Saved {source} as {target} ({target.stat().st_size} bytes).\n")
    return BROKEN if any(found) else DONE


def restore(url: str, source: Path, say: Say, now: datetime) -> int:
    """Put a saved database back; 1 if its audit has findings.

    Raises :class:`Conflict` for a file that is damaged, or of a newer program, and
    :class:`InUse` while the database is used.
    """
    target = _file_of(url)
    if target is None:
        return _tell_how(url, source, say)
    if not source.is_file():
        raise Conflict(f"There is no file {source}.")
    if target.exists() and os.path.samefile(source, target):
        raise Conflict(f"{source} is the database itself.")
    with _in_words(source):
        copying.check(source)
        _demand_known(source)
    kept = target.with_name(f"{target.name}.before-{now:%Y%m%dT%H%M%S}")
    if kept.exists():
        raise Conflict(f"{kept} is there already.")
    with _in_words(target):
        was_there = copying.put_back(source, target, kept)
    status = BROKEN if _audit(target, say) else DONE
    say(f"Restored {target} from {source}.\n")
    if was_there:
        say(f"What was there is in {kept}.\n")
    return status


def _file_of(url: str) -> Path | None:
    """The file of the database; none where it has programs of its own."""
    try:
        name = catalogue.of_url(url).name
        file = dumping.sqlite_file(url)
    except ValueError as error:
        raise Conflict(str(error)) from error
    if file is None and name == "sqlite":
        raise Conflict("The database is in no file, and nothing of it is kept.")
    return file


def _tell_how(url: str, file: Path, say: Say) -> int:
    told = dumping.commands(url, str(file))
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


@contextmanager
def _in_words(file: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        # It quotes what is damaged.
        raise Conflict(f"Cannot use {file}: it is damaged.") from error
    except sqlite3.Error as error:
        raise Conflict(f"Cannot use {file}: {error}.") from error


@contextmanager
def _store_of(file: Path) -> Iterator[Store]:
    url = f"sqlite:///{file.absolute()}"
    backend = catalogue.of_url(url)
    store = Store(backend, backend.engines(url, readers_max=READERS, busy_timeout_s=WAIT_S))
    try:
        yield store
    finally:
        store.dispose()


def _audit(file: Path, say: Say) -> int:
    """The number of findings, each of which is told."""
    with _store_of(file) as store:
        with store.read() as tx:
            current = schema.revision(tx)
            is_usable = schema.is_usable(tx)
        if not is_usable:
            say(f"It is at revision {current}, and not audited before it is brought up.\n")
            return 0
        found = auditing.look(store)
    for each in found:
        say(f"{each}\n")
    say(f"{len(found)} findings\n")
    return len(found)


def _demand_known(file: Path) -> None:
    """Raise :class:`Conflict` for a copy that this program could not use."""
    current = copying.revision(file)
    if current not in {each.revision for each in schema.steps()}:
        raise Conflict(f"{file} is at revision {current}, unknown to this program.")
    is_newest = current == schema.newest_revision()
    copying.demand_tables(file, soundness.tables_of(is_newest=is_newest))
