"""MariaDB, standalone or as a Galera cluster in which one node takes all writes.

Always true: only one write transaction is open on a server at a time. Each write transaction begins
by incrementing the row of ``write_order``, and keeps the row lock until the commit. So the
transaction sees the writes of the previous writer, and ids are in commit order. If two nodes of a
cluster ever write concurrently, both change the row, and the later commit fails its certification.
Each connection checks whether its server is a node of a cluster; see
:mod:`innkeeper.store.backends.galera`.

READ COMMITTED is sufficient for writers, since each writer has waited for the previous one. Readers
use REPEATABLE READ, which gives them a consistent snapshot. In a cluster, the first statement of a
reader waits until the node has applied all acknowledged writes.

Texts are compared by bytes (``utf8mb4_nopad_bin``). With its default collation, MariaDB would treat
"A" and "a " as equal.
"""

from __future__ import annotations

import shlex
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
from innkeeper.store.backends.backup_commands import BackupCommands, line
from innkeeper.store.backends.pooling import engines

LOG = structlog.get_logger("innkeeper.store")

NAME = "mariadb"
DRIVER = "mariadb+pymysql"
COLLATION = "utf8mb4_nopad_bin"
ANSWER_WITHIN_S = 10
"""How long a statement may take in addition to its wait for locks. Only this timeout detects a
frozen node, since the connections of such a node stay open."""
UPGRADE_LOCK = "CONCAT('innkeeper.upgrade.', MD5(DATABASE()))"
"""The name of the lock for upgrades. The name contains the database, because all databases of a
server share one set of named locks."""
UPGRADE_WAIT_S = 600
"""How long one statement of an upgrade may take."""

DEADLOCK = 1213
"""The error of a deadlock, and of a commit that fails Galera's certification."""
LOCK_WAIT = 1205
RECORD_CHANGED = 1020
NO_SUCH_TABLE = 1146
READ_ONLY = frozenset({1290, 1792, 1836})
GONE = frozenset({1047, 1053, 1180, 1927, 2002, 2003, 2005, 2006, 2013, 2014, 2055, 4031})
"""Errors that require a new connection: a node without its cluster, a server that is shutting down,
a commit with an unknown outcome, a lost connection. Numbers from 2000 to 2999 are the driver's own,
for an unreachable server."""
TROUBLES = {
    DEADLOCK: Trouble.COLLISION,
    RECORD_CHANGED: Trouble.COLLISION,
    LOCK_WAIT: Trouble.WAITED,
    # Statement timeout.
    1969: Trouble.WAITED,
    # Too many connections to the server or by this user.
    1040: Trouble.CROWDED,
    1203: Trouble.CROWDED,
    1226: Trouble.CROWDED,
    **dict.fromkeys(galera.NOT_LET_IN, Trouble.NOT_LET_IN),
    **dict.fromkeys(READ_ONLY, Trouble.READ_ONLY),
    # The disk is full, or the table cannot grow.
    1021: Trouble.FULL,
    1114: Trouble.FULL,
    # Errors while reading or writing, and errors of the storage engine.
    1024: Trouble.DISK,
    1026: Trouble.DISK,
    1030: Trouble.DISK,
}
SAFE_SETTINGS = {
    "innodb_flush_log_at_trx_commit": ("1",),
    "innodb_doublewrite": ("ON", "1"),
    "innodb_autoinc_lock_mode": ("0", "1", "2"),
}
"""Settings of the server, with their safe values. With other values, acknowledged writes may be
lost in a power failure."""
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
    """A cursor whose errors contain no values. Errors are logged, and values can be secret."""

    def execute(self, query: Any, args: Any = None) -> int:
        """See :meth:`pymysql.cursors.Cursor.execute`."""
        try:
            return super().execute(query, args)
        except (err.IntegrityError, err.DataError) as error:
            # Change this error in place. A new error would keep this one, and its values, as its
            # cause.
            error.args = (error.args[0], "the database rejected a value")
            raise
        except TypeError as error:
            # Unlike others, this driver raises no DB-API error for values that it cannot write.
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
        """Create the pools. A pool connects at its first use."""
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
            # A statement may wait ``wait_s`` for other writers, and then still needs time to
            # answer.
            "read_timeout": wait_s + ANSWER_WITHIN_S,
            "write_timeout": wait_s + ANSWER_WITHIN_S,
            "init_command": "SET SESSION "
            + ", ".join(f"{name} = {value}" for name, value in settings.items()),
        }
        pools = engines(at, readers_max, busy_timeout_s, arguments)
        # Without an address, the URL contains the path of a socket.
        cluster = galera.Cluster(hosts or [addresses.Address("localhost", None)])
        settings_check = SettingsCheck()
        connects = (cluster.connect_for_reading, cluster.connect_for_writing)
        for pool, connect in zip(pools, connects, strict=True):
            sa.event.listen(pool, "do_connect", _connecting(connect))
            sa.event.listen(pool, "connect", settings_check.run)
            sa.event.listen(pool, "checkout", _check_out)
            sa.event.listen(pool, "checkin", _check_in)
            sa.event.listen(pool, "handle_error", _mark_disconnect)
        return pools

    def backup(self, url: str, file: str) -> BackupCommands:
        """See :class:`Backend`."""
        # Use the first of several servers, since all contain the same data.
        at, _ = addresses.split(url)
        where = [f"--host={at.host or 'localhost'}"]
        where += [f"--port={at.port}"] if at.port else []
        where += [f"--user={at.username}"] if at.username else []
        where += ["--password"] if at.password else []
        database = at.database or ""
        # A consistent snapshot, without blocking writers.
        dump = line("mariadb-dump", *where, "--single-transaction", "--quick", database)
        load = line("mariadb", *where, "--default-character-set=utf8mb4", database)
        return BackupCommands(
            f"{dump} > {shlex.quote(file)}",
            f"{load} < {shlex.quote(file)}",
            line("mariadb-backup", "--backup", *where, "--target-dir=FOLDER"),
        )

    def trouble(self, error: Exception) -> Trouble | None:
        """See :class:`Backend`. Errors without a number come from the driver."""
        origin = getattr(error, "orig", error)
        if not isinstance(origin, pymysql.Error):
            return None
        if isinstance(origin, err.InterfaceError):
            return Trouble.GONE
        number = number_of(origin)
        return Trouble.GONE if number in GONE else TROUBLES.get(number)

    def begin_reading(self, tx: sa.Connection) -> None:
        """Do nothing, since the first statement begins the transaction."""

    def begin_writing(self, tx: sa.Connection, *, takes_turn: bool) -> None:
        """See :class:`Backend`. Raises :class:`Unreachable` if another node takes the writes."""
        if not takes_turn:
            return
        raw = _raw(tx)
        try:
            if raw.node is None:
                touched = tx.exec_driver_sql(NEXT).rowcount
            else:
                touched = tx.exec_driver_sql(NEXT_ON_NODE, (raw.node,)).rowcount
        except sa.exc.ProgrammingError as error:
            if number_of(error.orig) != NO_SUCH_TABLE:
                raise
            # An empty database needs no order of writers yet. In a cluster, the next connection
            # names the node that takes writes.
            raw.must_be_replaced = raw.node is not None
            return
        if touched != 1:
            tx.invalidate()
            raise Unreachable("Another node of the database takes the writes now.")

    def begin_upgrade(self, tx: sa.Connection) -> None:
        """Take a named lock. A row lock would not last, since altering a table commits implicitly.

        The lock belongs to one server or node, which all writers use. The lock is released when the
        connection is closed after the commit. If the lock were released earlier, another process
        could miss the upgrade.
        """
        # Altering a large table takes long.
        _raw(tx).wait_for(UPGRADE_WAIT_S)
        got = tx.exec_driver_sql(f"SELECT GET_LOCK({UPGRADE_LOCK}, 0)").scalar()
        if got != 1:
            raise Busy("Another process is upgrading the schema.")

    def prepare(self, tx: sa.Connection, *, is_empty: bool) -> None:
        """Set the collation of an empty database, or reject tables with a different collation."""
        if is_empty:
            tx.exec_driver_sql(f"ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {COLLATION}")
        else:
            _check_collations(tx)

    def end_upgrade(self, tx: sa.Connection) -> None:
        """Do nothing, since the lock is released when the connection is closed after the commit."""


class SettingsCheck:
    """Logs the unsafe settings of servers, each setting once per process."""

    def __init__(self) -> None:
        self._logged: set[tuple[str, str, str]] = set()

    def run(self, raw: galera.NodeConnection, _record: Any) -> None:
        """Check the server of a new connection."""
        safe = SAFE_SETTINGS if raw.node is None else SAFE_CLUSTER_SETTINGS
        with raw.cursor() as cursor:
            names = ", ".join(f"'{each}'" for each in safe)
            cursor.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
            found = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
        for name, value in found.items():
            server = f"{raw.host}:{raw.port}"
            if value.upper() not in safe[name] and (server, name, value) not in self._logged:
                self._logged.add((server, name, value))
                facts = {"server": server, "setting": name, "value": value}
                LOG.warning("unsafe_database_setting", **facts, safe=" or ".join(safe[name]))


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
        # The pool replaces this connection and all older ones.
        raise sa.exc.InvalidatePoolError("The node has left its cluster.")


def _check_in(raw: galera.NodeConnection | None, record: Any) -> None:
    if raw is not None and raw.must_be_replaced:
        record.invalidate()


def _mark_disconnect(context: sa.engine.ExceptionContext) -> None:
    if number_of(context.original_exception) in GONE | READ_ONLY:
        context.is_disconnect = True


def _raw(tx: sa.Connection) -> galera.NodeConnection:
    return cast(galera.NodeConnection, tx.connection.dbapi_connection)


def _check_collations(tx: sa.Connection) -> None:
    """Raise :class:`Conflict` for a table that treats "A" and "a" as equal."""
    found = tx.exec_driver_sql(OTHER_COLLATIONS, (COLLATION,)).first()
    if found is not None:
        raise Conflict(
            f"The table {found[0]} of the database has the collation {found[1]}, which treats some "
            f"different names as equal. Convert all tables to {COLLATION}."
        )


def number_of(error: BaseException | None) -> int:
    """Return the number of a server's error, or 0 for errors without a number."""
    numbers = [each for each in getattr(error, "args", ()) if isinstance(each, int)]
    return numbers[0] if numbers else 0
