"""Backup and restore commands for databases that come with their own backup programs.

Always true: the commands are complete and contain no password. The programs prompt for the
password, or read it from their usual places.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from innkeeper.store.backends import addresses

POSTGRESQL, MARIADB = "postgresql", "mariadb"
SECRETS = frozenset({"password", "sslpassword"})
"""Secret parameters of a URL."""


class Commands(NamedTuple):
    """Shell commands that back up and restore a database.

    ``save`` and ``restore`` are for one database. ``whole`` makes a base backup of the server.
    """

    save: str
    restore: str
    whole: str


def commands(url: str, file: str) -> Commands:
    """Return the commands that dump the database at ``url`` to ``file`` and restore it."""
    # Use the first of several servers, since all contain the same data.
    at, _ = addresses.split(url)
    if at.get_backend_name() == POSTGRESQL:
        return _postgresql(at, file)
    return _mariadb(at, file)


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite database, or ``None`` for any other or in-memory database."""
    at, _ = addresses.split(url)
    if at.get_backend_name() != "sqlite" or at.database in (None, "", ":memory:"):
        return None
    return Path(str(at.database))


def _postgresql(at: sa.URL, file: str) -> Commands:
    query = {name: value for name, value in at.query.items() if name not in SECRETS}
    plain = sa.URL.create(
        POSTGRESQL, at.username, None, at.host, at.port, at.database, query
    ).render_as_string(hide_password=False)
    # SQLAlchemy encodes a space as a plus, which these programs do not decode.
    where = f"--dbname={plain.replace('+', '%20')}"
    return Commands(
        _line("pg_dump", "--format=custom", f"--file={file}", where),
        _line(
            *("pg_restore", "--clean", "--if-exists", "--no-owner", "--exit-on-error"),
            *("--single-transaction", where, file),
        ),
        _line("pg_basebackup", "--checkpoint=fast", "--pgdata=FOLDER", where),
    )


def _mariadb(at: sa.URL, file: str) -> Commands:
    where = [f"--host={at.host or 'localhost'}"]
    where += [f"--port={at.port}"] if at.port else []
    where += [f"--user={at.username}"] if at.username else []
    where += ["--password"] if at.password else []
    database = at.database or ""
    # A consistent snapshot, without blocking writers.
    dump = _line("mariadb-dump", *where, "--single-transaction", "--quick", database)
    load = _line("mariadb", *where, "--default-character-set=utf8mb4", database)
    return Commands(
        f"{dump} > {shlex.quote(file)}",
        f"{load} < {shlex.quote(file)}",
        _line("mariadb-backup", "--backup", *where, "--target-dir=FOLDER"),
    )


def _line(*words: str) -> str:
    return " ".join(shlex.quote(word) for word in words)
