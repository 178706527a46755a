"""MariaDB, alone or as a Galera cluster of which one node takes all writes.

Always true: no two transactions that write are open at the same time on one server. Each begins
by counting up the one row of ``write_order``, whose lock it keeps until the commit; so it reads
what the last writer left, and numbers are given in the order of commits. Every node of a
cluster would have that row changed as well: should two of them ever take writes at once, the
later commit fails its certification, whatever else it wrote.

Texts are compared byte by byte (``utf8mb4_nopad_bin``); MariaDB's own rule would take "A" and
"a " for the same name.
"""

from __future__ import annotations

from typing import Any

import pymysql
import sqlalchemy as sa
from pymysql import err
from pymysql.cursors import Cursor

from innkeeper.store.backends.backend import Engines
from innkeeper.store.backends.pooling import engine

NAME = "mariadb"
DRIVER = "mariadb+pymysql"
WRITERS_MAX = 2
"""Connections that write: one for the thread that decides, one for whoever writes beside it."""
COLLATION = "utf8mb4_nopad_bin"
IDLE_MAX_S = 15
"""A process that stops in the middle of a transaction, say for good, keeps all others from
writing; the server ends its connection after so long."""
UPGRADE_LOCK = "innkeeper.upgrade"
UPGRADE_WAIT_S = 600

DEADLOCK = 1213
"""Also how Galera says that the certification of a commit failed."""
LOCK_WAIT = 1205
RECORD_CHANGED = 1020
CONFLICTS = frozenset({DEADLOCK, LOCK_WAIT, RECORD_CHANGED})
NO_SUCH_TABLE = 1146


class QuietCursor(Cursor):
    """A cursor whose errors name no value: what is written can be a secret, and is logged."""

    def execute(self, query: Any, args: Any = None) -> int:
        """See :meth:`pymysql.cursors.Cursor.execute`."""
        try:
            return super().execute(query, args)
        except (err.IntegrityError, err.DataError) as error:
            # In its place: an error that was raised from it would still lead to it.
            error.args = (error.args[0], "a value was refused")
            raise
        except TypeError as error:
            # Every driver but this one has an error of its own for what it cannot write.
            raise err.ProgrammingError(0, str(error)) from error


class Mariadb:
    """See :class:`innkeeper.store.backends.backend.Backend`."""

    name = NAME

    def engines(self, url: str, *, readers_max: int, busy_timeout_s: float) -> Engines:
        """Make the pools. The first connection is made when it is needed."""
        at = sa.make_url(url).set(drivername=DRIVER)
        wait_s = max(1, round(busy_timeout_s))
        settings = {
            "sql_mode": "'TRADITIONAL,ONLY_FULL_GROUP_BY,ANSI_QUOTES'",
            "time_zone": "'+00:00'",
            "innodb_lock_wait_timeout": wait_s,
            "idle_transaction_timeout": IDLE_MAX_S,
        }
        arguments = {
            "charset": "utf8mb4",
            "cursorclass": QuietCursor,
            "connect_timeout": max(2, wait_s),
            # What nobody answers is not waited for: a statement waits for others that long.
            "read_timeout": wait_s + 20,
            "write_timeout": wait_s + 20,
            "init_command": "SET SESSION "
            + ", ".join(f"{name} = {value}" for name, value in settings.items()),
        }
        made = Engines(
            reading=engine(
                at, readers_max, busy_timeout_s, arguments, isolation_level="REPEATABLE READ"
            ),
            writing=engine(
                at, WRITERS_MAX, busy_timeout_s, arguments, isolation_level="READ COMMITTED"
            ),
        )
        sa.event.listen(made.writing, "begin", _begin_writing)
        return made

    def is_conflict(self, error: Exception) -> bool:
        """Somebody else was in the way, and the same work may be tried again."""
        origin = getattr(error, "orig", error)
        return isinstance(origin, pymysql.Error) and number_of(origin) in CONFLICTS

    def begin_upgrade(self, tx: sa.Connection, *, is_empty: bool) -> None:
        """Keep others from upgrading: each statement that alters a table commits by itself."""
        tx.exec_driver_sql(f"SELECT GET_LOCK('{UPGRADE_LOCK}', {UPGRADE_WAIT_S})")
        if is_empty:
            tx.exec_driver_sql(f"ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {COLLATION}")

    def end_upgrade(self, tx: sa.Connection) -> None:
        """Let others look."""
        tx.exec_driver_sql(f"SELECT RELEASE_LOCK('{UPGRADE_LOCK}')")


def _begin_writing(connection: sa.Connection) -> None:
    try:
        connection.exec_driver_sql("UPDATE write_order SET number = number + 1")
    except sa.exc.ProgrammingError as error:
        # An empty database has nothing yet to write in any order.
        if number_of(error.orig) != NO_SUCH_TABLE:
            raise


def number_of(error: BaseException | None) -> int:
    """The server's number of an error; 0 for one that did not come from it."""
    numbers = [each for each in getattr(error, "args", ()) if isinstance(each, int)]
    return numbers[0] if numbers else 0
