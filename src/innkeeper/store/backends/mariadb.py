"""MariaDB, alone or as a Galera cluster of which one node takes all writes.

Always true: no two transactions that write are open at the same time on one server. Each begins
by counting up the one row of ``write_order``, whose lock it keeps until the commit; so it reads
what the last writer left, and numbers are given in the order of commits. Every node of a
cluster would have that row changed as well: should two of them ever take writes at once, the
later commit fails its certification, whatever else it wrote. Whether a server is a node of a
cluster is asked on each connection; see :mod:`innkeeper.store.backends.galera`.

READ COMMITTED is enough for writers, who have waited for the one before them. Readers have
REPEATABLE READ, which shows them one moment; in a cluster their first statement waits until the
node has all that was acknowledged anywhere before.

Texts are compared byte by byte (``utf8mb4_nopad_bin``); MariaDB's own rule would take "A" and
"a " for the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pymysql
import sqlalchemy as sa
import structlog
from pymysql import err
from pymysql.cursors import Cursor

from innkeeper.domain.errors import Busy, Conflict, Unreachable
from innkeeper.store.backends import addresses, galera
from innkeeper.store.backends.backend import IDLE_TIMEOUT_S, Engines, Trouble
from innkeeper.store.backends.pooling import engine
from innkeeper.store.guards import WITHOUT_TURN

LOG = structlog.get_logger("innkeeper.store")

NAME = "mariadb"
DRIVER = "mariadb+pymysql"
WRITERS_MAX = 2
"""Connections that write: one for the thread that decides, one for whoever writes beside it."""
COLLATION = "utf8mb4_nopad_bin"
ANSWER_WITHIN_S = 10
"""How long a statement may take that waits for nobody. A node that was stopped keeps its
connections, and whoever has asked it something finds out by this alone."""
UPGRADE_LOCK = "CONCAT('innkeeper.upgrade.', MD5(DATABASE()))"
"""A server has its named locks for all of its databases together."""
UPGRADE_WAIT_S = 600
"""How long one statement of an upgrade may take."""

DEADLOCK = 1213
"""Also how Galera says that the certification of a commit failed."""
LOCK_WAIT = 1205
RECORD_CHANGED = 1020
NO_SUCH_TABLE = 1146
READ_ONLY = frozenset({1290, 1792, 1836})
GONE = frozenset({1047, 1053, 1180, 1927, 2002, 2003, 2005, 2006, 2013, 2014, 2055, 4031})
"""Another connection is needed: a node that was put out of its cluster, a server that ends, a
commit whose end nobody knows, a connection cut short. From 2000 on they are the driver's own
numbers for a server that cannot be reached, or is not there any more."""
TROUBLES = {
    DEADLOCK: Trouble.COLLISION,
    RECORD_CHANGED: Trouble.COLLISION,
    LOCK_WAIT: Trouble.WAITED,
    # A statement that took longer than the server allows.
    1969: Trouble.WAITED,
    # More connections than the server, or this user, may have.
    1040: Trouble.CROWDED,
    1203: Trouble.CROWDED,
    1226: Trouble.CROWDED,
    **dict.fromkeys(galera.NOT_LET_IN, Trouble.NOT_LET_IN),
    **dict.fromkeys(READ_ONLY, Trouble.READ_ONLY),
    # No space, and a table that cannot grow.
    1021: Trouble.FULL,
    1114: Trouble.FULL,
    # Reading, writing, and what the storage engine says of itself.
    1024: Trouble.DISK,
    1026: Trouble.DISK,
    1030: Trouble.DISK,
}
SAFE_SETTINGS = {
    "innodb_flush_log_at_trx_commit": ("1",),
    "innodb_doublewrite": ("ON", "1"),
    "innodb_autoinc_lock_mode": ("0", "1", "2"),
}
"""With any other value, what was acknowledged may be gone after a loss of power."""
SAFE_CLUSTER_SETTINGS = {
    **SAFE_SETTINGS,
    "binlog_format": ("ROW",),
    "innodb_autoinc_lock_mode": ("2",),
    "wsrep_osu_method": ("TOI",),
    "wsrep_certify_nonpk": ("ON",),
}


NEXT = "UPDATE write_order SET number = number + 1"
NEXT_ON_NODE = NEXT + " WHERE writer = %s"
OTHER_COLLATIONS = (
    "SELECT table_name, table_collation FROM information_schema.tables"
    " WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'"
    " AND table_collation <> %s ORDER BY table_name LIMIT 1"
)


class QuietMysqlCursor(Cursor):
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

    def engines(
        self,
        url: str,
        *,
        readers_max: int,
        busy_timeout_s: float,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
    ) -> Engines:
        """Make the pools. The first connection is made when it is needed."""
        at, hosts = addresses.split(url)
        at = at.set(drivername=DRIVER)
        wait_s = max(1, round(busy_timeout_s))
        settings = {
            "sql_mode": "'TRADITIONAL,ONLY_FULL_GROUP_BY,ANSI_QUOTES'",
            "time_zone": "'+00:00'",
            "innodb_lock_wait_timeout": wait_s,
            "idle_transaction_timeout": max(1, round(idle_timeout_s)),
        }
        arguments = {
            "charset": "utf8mb4",
            "cursorclass": QuietMysqlCursor,
            "connect_timeout": max(2, wait_s),
            # What nobody answers is not waited for: a statement waits for others that long.
            "read_timeout": wait_s + ANSWER_WITHIN_S,
            "write_timeout": wait_s + ANSWER_WITHIN_S,
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
        # A socket's path stands in for an address.
        cluster = galera.Cluster(hosts or [addresses.Address("localhost", None)])
        watched = Watched()
        for pool, connect in (
            (made.reading, cluster.connect_for_reading),
            (made.writing, cluster.connect_for_writing),
        ):
            sa.event.listen(pool, "do_connect", _connecting(connect))
            sa.event.listen(pool, "connect", watched.look)
            sa.event.listen(pool, "checkout", _check_out)
            sa.event.listen(pool, "checkin", _check_in)
            sa.event.listen(pool, "handle_error", _find_out)
        sa.event.listen(made.writing, "begin", _begin_writing)
        return made

    def trouble(self, error: Exception) -> Trouble | None:
        """See :class:`Backend`. What comes without a number comes from the driver itself."""
        origin = getattr(error, "orig", error)
        if not isinstance(origin, pymysql.Error):
            return None
        if isinstance(origin, err.InterfaceError):
            return Trouble.GONE
        number = number_of(origin)
        return Trouble.GONE if number in GONE else TROUBLES.get(number)

    def begin_upgrade(self, tx: sa.Connection) -> None:
        """Keep others from upgrading: each statement that alters a table commits by itself.

        The lock is one server's, and in a cluster one node's. That is enough, since all who
        write are on the same one. It is the connection's, and goes with it behind the commit:
        whoever had it sooner would not see yet what this one has done.
        """
        # To alter a large table takes as long as it takes.
        _raw(tx).wait_for(UPGRADE_WAIT_S)
        got = tx.exec_driver_sql(f"SELECT GET_LOCK({UPGRADE_LOCK}, 0)").scalar()
        if got != 1:
            raise Busy("Another process brings the schema up.")

    def prepare(self, tx: sa.Connection, *, is_empty: bool) -> None:
        """Have texts compared byte by byte; tables that have another rule are refused."""
        if is_empty:
            tx.exec_driver_sql(f"ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {COLLATION}")
        else:
            _check_collations(tx)

    def end_upgrade(self, tx: sa.Connection) -> None:
        """Nothing to do: the connection is not used again."""


class Watched:
    """Tells of a server's settings that are not safe, once for each in a process's life."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str, str]] = set()

    def look(self, raw: galera.NodeConnection, _record: Any) -> None:
        """Look at the server of a new connection."""
        wanted = SAFE_SETTINGS if raw.node is None else SAFE_CLUSTER_SETTINGS
        with raw.cursor() as cursor:
            named = ", ".join(f"'{each}'" for each in wanted)
            cursor.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({named})")
            found = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
        for name, value in found.items():
            told = (f"{raw.host}:{raw.port}", name, value)
            if value.upper() not in wanted[name] and told not in self._told:
                self._told.add(told)
                LOG.warning(
                    "unsafe_database_setting",
                    server=told[0],
                    setting=name,
                    value=value,
                    safe=" or ".join(wanted[name]),
                )


def _connecting(
    connect: Callable[[dict[str, Any]], galera.NodeConnection],
) -> Callable[..., galera.NodeConnection]:
    def do_connect(
        _dialect: Any, _record: Any, _arguments: Any, named: dict[str, Any]
    ) -> galera.NodeConnection:
        return connect(named)

    return do_connect


def _check_out(raw: galera.NodeConnection, _record: Any, _proxy: Any) -> None:
    if not galera.is_still_usable(raw):
        # The pool makes another one in its place, and throws away all that are older.
        raise sa.exc.InvalidatePoolError("The node is out of its cluster.")


def _check_in(raw: galera.NodeConnection | None, record: Any) -> None:
    if raw is not None and raw.must_be_replaced:
        record.invalidate()


def _find_out(context: sa.engine.ExceptionContext) -> None:
    if number_of(context.original_exception) in GONE | READ_ONLY:
        context.is_disconnect = True


def _raw(tx: sa.Connection) -> galera.NodeConnection:
    return cast(galera.NodeConnection, tx.connection.dbapi_connection)


def _begin_writing(connection: sa.Connection) -> None:
    if connection.get_execution_options().get(WITHOUT_TURN):
        return
    raw = _raw(connection)
    try:
        if raw.node is None:
            touched = connection.exec_driver_sql(NEXT).rowcount
        else:
            touched = connection.exec_driver_sql(NEXT_ON_NODE, (raw.node,)).rowcount
    except sa.exc.ProgrammingError as error:
        if number_of(error.orig) != NO_SUCH_TABLE:
            raise
        # An empty database has nothing yet to write in any order. Of a cluster, the next
        # connection names the node that takes writes.
        raw.must_be_replaced = raw.node is not None
        return
    if touched != 1:
        connection.invalidate()
        raise Unreachable("Another node of the database takes the writes now.")


def _check_collations(tx: sa.Connection) -> None:
    """Refuse tables in which "A" and "a" are one name."""
    found = tx.exec_driver_sql(OTHER_COLLATIONS, (COLLATION,)).first()
    if found is not None:
        raise Conflict(
            f"The table {found[0]} of the database has the collation {found[1]}, by which "
            f"different names can be the same. Convert all tables to {COLLATION}."
        )


def number_of(error: BaseException | None) -> int:
    """The server's number of an error; 0 for one that did not come from it."""
    numbers = [each for each in getattr(error, "args", ()) if isinstance(each, int)]
    return numbers[0] if numbers else 0
