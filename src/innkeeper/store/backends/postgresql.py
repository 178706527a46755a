"""PostgreSQL: all processes write to one primary, one transaction after the other.

Always true: an acknowledged write is on the disk of the primary and of the synchronous standby, if
one exists. No transaction begins on a server in recovery, so no decision depends on a replica.

Writers take an advisory lock before they read anything, and keep it until the commit. So each
writer sees the writes of the previous writer, ids are in commit order, and READ COMMITTED is
sufficient. Readers take no lock. REPEATABLE READ gives them a consistent snapshot.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

import psycopg
import sqlalchemy as sa
from psycopg import errors

from innkeeper.store.backends import addresses
from innkeeper.store.backends.backend import IDLE_TIMEOUT_S, Engines, Trouble
from innkeeper.store.backends.backup_commands import BackupCommands, line
from innkeeper.store.backends.pooling import engines

T = TypeVar("T")
NAME = "postgresql"
DRIVER = "postgresql+psycopg"
ORDER = 7_152_306_419
"""The advisory lock that writers queue for. The number must not be used by other programs."""
PASSED_OVER_AFTER_S = 2
"""The connection timeout if several servers are configured. libpq's minimum is 2 s."""
ANSWER_WITHIN_S = 10
"""How long a statement may take in addition to its wait for locks."""
SECRETS = frozenset({"password", "sslpassword"})
"""Secret parameters of a URL."""
READ_ONLY = "25006"
TROUBLES = {
    "40001": Trouble.COLLISION,
    "40P01": Trouble.COLLISION,
    # Lock wait timeout and statement timeout.
    "55P03": Trouble.WAITED,
    "57014": Trouble.WAITED,
    READ_ONLY: Trouble.READ_ONLY,
    # The server ended a transaction that was idle for too long.
    "25P03": Trouble.GONE,
    "40003": Trouble.GONE,
    # The server is shutting down, crashed or starting up, or the session was idle for too long.
    "57P01": Trouble.GONE,
    "57P02": Trouble.GONE,
    "57P03": Trouble.GONE,
    "57P05": Trouble.GONE,
    "53100": Trouble.FULL,
    "53300": Trouble.CROWDED,
}
CLASSES = {"08": Trouble.GONE, "53": Trouble.GONE, "58": Trouble.DISK, "XX": Trouble.DISK}
"""Maps the first two characters of an SQLSTATE to a problem."""
MESSAGES = {
    "too many clients": Trouble.CROWDED,
    "remaining connection slots": Trouble.CROWDED,
    "session is read-only": Trouble.READ_ONLY,
    "password authentication failed": Trouble.NOT_LET_IN,
    "Peer authentication failed": Trouble.NOT_LET_IN,
    "no password supplied": Trouble.NOT_LET_IN,
    "no pg_hba.conf entry": Trouble.NOT_LET_IN,
    "is not permitted to log in": Trouble.NOT_LET_IN,
    # An unknown user or database.
    '" does not exist': Trouble.NOT_LET_IN,
}
"""Maps parts of messages to problems, since login errors have no SQLSTATE."""
QUOTING = (errors.IntegrityError, errors.DataError)
"""Errors whose messages quote rows."""


class QuietPsycopgCursor(psycopg.Cursor[Any]):
    """A cursor whose errors contain no values. Errors are logged, and values can be secret."""

    def execute(self, *args: Any, **options: Any) -> QuietPsycopgCursor:
        """See :meth:`psycopg.Cursor.execute`."""
        try:
            return super().execute(*args, **options)
        except QUOTING as error:
            _quieten(error)
            raise

    def executemany(self, *args: Any, **options: Any) -> None:
        """See :meth:`psycopg.Cursor.executemany`."""
        try:
            super().executemany(*args, **options)
        except QUOTING as error:
            _quieten(error)
            raise


class PromptConnection(psycopg.Connection[Any]):
    """A connection that times out if the server hangs.

    The connections of a frozen server stay open, since the server's kernel still acknowledges
    packets.
    """

    silence_max_s: float = math.inf
    usual_max_s: float = math.inf
    """The usual timeout for an answer. ``silence_max_s`` is the present timeout, which is longer
    during an upgrade."""

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **options: Any) -> T:
        """See :meth:`psycopg.Connection.wait`."""
        try:
            return super().wait(_unless_silent(gen, self.silence_max_s), *args, **options)
        except SilentServer:
            # The answer may still arrive, so the connection cannot be used again.
            self.close()
            raise


class SilentServer(psycopg.OperationalError):
    """The server did not answer in time."""


def _unless_silent(gen: Generator[Any, Any, T], silence_max_s: float) -> Generator[Any, Any, T]:
    answered_s = time.perf_counter()
    ready = None
    while time.perf_counter() - answered_s <= silence_max_s:
        try:
            requested = gen.send(ready)
        except StopIteration as done:
            return cast(T, done.value)
        ready = yield requested
        if ready:
            answered_s = time.perf_counter()
    raise SilentServer("The server does not answer.")


def _quieten(error: psycopg.Error) -> None:
    # Change this error in place. A new error would keep this one, and its values, as its cause.
    named = error.diag.constraint_name or error.diag.column_name or ""
    error.args = (f"the database rejected a value: {error.sqlstate} {named}".strip(),)


class Postgresql:
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
        wait_s = max(2, round(busy_timeout_s))
        if len(hosts) > 1:
            # SQLAlchemy's form of several hosts. A hanging server must not delay the next attempt.
            at = at.set(host=None, port=None).update_query_dict({"host": [*map(str, hosts)]})
            wait_s = min(wait_s, PASSED_OVER_AFTER_S)
        wait_ms = max(1, round(busy_timeout_s * 1000))
        options = {
            "lock_timeout": f"{wait_ms}ms",
            "idle_in_transaction_session_timeout": f"{max(1, round(idle_timeout_s))}s",
            # Without a timeout, because PostgreSQL reports success if it cancels a commit that
            # waits for a standby.
            "statement_timeout": "0",
            "timezone": "UTC",
        }
        arguments = {
            "connect_timeout": wait_s,
            "application_name": "innkeeper",
            "cursor_factory": QuietPsycopgCursor,
            # Connect only to the server that accepts writes: the primary.
            "target_session_attrs": "read-write",
            "options": " ".join(f"-c {name}={value}" for name, value in options.items()),
            # Detect a peer that is gone without closing the connection.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": wait_ms + 10_000,
        }
        pools = engines(at, readers_max, busy_timeout_s, arguments)
        connect = _connecting(busy_timeout_s + ANSWER_WITHIN_S)
        for pool in pools:
            sa.event.listen(pool, "do_connect", connect)
            sa.event.listen(pool, "handle_error", _mark_disconnect)
        return pools

    def begin_reading(self, tx: sa.Connection) -> None:
        """Do nothing, since the first statement begins the transaction."""

    def begin_writing(self, tx: sa.Connection, *, takes_turn: bool) -> None:
        """See :class:`Backend`."""
        if takes_turn:
            tx.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ORDER})")

    def begin_upgrade(self, tx: sa.Connection) -> None:
        """Suspend the timeout, since altering a large table takes long.

        No further lock is needed: other upgrades queue with the writers.
        """
        _raw(tx).silence_max_s = math.inf

    def prepare(self, tx: sa.Connection, *, is_empty: bool) -> None:
        """Do nothing, since PostgreSQL compares texts by bytes."""

    def end_upgrade(self, tx: sa.Connection) -> None:
        """Restore the timeout."""
        raw = _raw(tx)
        raw.silence_max_s = raw.usual_max_s

    def backup(self, url: str, file: str) -> BackupCommands:
        """See :class:`Backend`."""
        # Use the first of several servers, since all contain the same data.
        at, _ = addresses.split(url)
        query = {name: value for name, value in at.query.items() if name not in SECRETS}
        plain = sa.URL.create(
            NAME, at.username, None, at.host, at.port, at.database, query
        ).render_as_string(hide_password=False)
        # SQLAlchemy encodes a space as a plus, which these programs do not decode.
        where = f"--dbname={plain.replace('+', '%20')}"
        return BackupCommands(
            line("pg_dump", "--format=custom", f"--file={file}", where),
            line(
                *("pg_restore", "--clean", "--if-exists", "--no-owner", "--exit-on-error"),
                *("--single-transaction", where, file),
            ),
            line("pg_basebackup", "--checkpoint=fast", "--pgdata=FOLDER", where),
        )

    def trouble(self, error: Exception) -> Trouble | None:
        """See :class:`Backend`. Errors without an SQLSTATE come from the connection."""
        origin = getattr(error, "orig", error)
        if not isinstance(origin, psycopg.Error):
            return None
        if origin.sqlstate is not None:
            return TROUBLES.get(origin.sqlstate) or CLASSES.get(origin.sqlstate[:2])
        if not isinstance(origin, (errors.OperationalError, errors.InterfaceError)):
            return None
        message = str(origin)
        return next((kind for part, kind in MESSAGES.items() if part in message), Trouble.GONE)


def _mark_disconnect(context: sa.engine.ExceptionContext) -> None:
    # A server that became a standby keeps its connections, which cannot write any more.
    if getattr(context.original_exception, "sqlstate", None) == READ_ONLY:
        context.is_disconnect = True


def _connecting(silence_max_s: float) -> Callable[..., PromptConnection]:
    def do_connect(
        _dialect: Any, _record: Any, arguments: Any, named: dict[str, Any]
    ) -> PromptConnection:
        raw = PromptConnection.connect(*arguments, **named)
        raw.silence_max_s = raw.usual_max_s = silence_max_s
        return raw

    return do_connect


def _raw(tx: sa.Connection) -> PromptConnection:
    return cast(PromptConnection, tx.connection.dbapi_connection)
