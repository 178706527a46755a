"""PostgreSQL: one primary that all processes write to, one transaction after the other.

Always true: an acknowledged write is on the primary's disk, and on that of a synchronous
standby where there is one; no transaction is begun on a server that is in recovery, so nothing
is ever decided by what a replica shows.

Writers take a lock of the whole database before they look at anything, and keep it until the
commit. So they read what the last writer left, numbers are given in the order of commits, and
READ COMMITTED is all the isolation that they need. Readers take no lock: REPEATABLE READ shows
them one moment.
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
from innkeeper.store.backends.pooling import engine
from innkeeper.store.guards import WITHOUT_TURN

T = TypeVar("T")
NAME = "postgresql"
DRIVER = "postgresql+psycopg"
WRITERS_MAX = 2
"""Connections that write: one for the thread that decides, one for whoever writes beside it."""
ORDER = 7_152_306_419
"""The advisory lock that writers queue for. Any number does that no other program takes."""
PASSED_OVER_AFTER_S = 2
"""One of several servers that does not let in for so long; less is not possible."""
ANSWER_WITHIN_S = 10
"""How long a statement may take that waits for nobody."""
READ_ONLY = "25006"
TROUBLES = {
    "40001": Trouble.COLLISION,
    "40P01": Trouble.COLLISION,
    # A lock that did not come free in time, and a statement that took too long.
    "55P03": Trouble.WAITED,
    "57014": Trouble.WAITED,
    READ_ONLY: Trouble.READ_ONLY,
    # Idle in a transaction for too long: the server has ended it.
    "25P03": Trouble.GONE,
    "40003": Trouble.GONE,
    # The server ends, has crashed, or is not there yet; the session was idle for too long.
    "57P01": Trouble.GONE,
    "57P02": Trouble.GONE,
    "57P03": Trouble.GONE,
    "57P05": Trouble.GONE,
    "53100": Trouble.FULL,
    "53300": Trouble.CROWDED,
}
CLASSES = {"08": Trouble.GONE, "53": Trouble.GONE, "58": Trouble.DISK, "XX": Trouble.DISK}
"""By the first two characters of an error's state."""
TOLD = {
    "too many clients": Trouble.CROWDED,
    "remaining connection slots": Trouble.CROWDED,
    "session is read-only": Trouble.READ_ONLY,
    "password authentication failed": Trouble.NOT_LET_IN,
    "Peer authentication failed": Trouble.NOT_LET_IN,
    "no password supplied": Trouble.NOT_LET_IN,
    "no pg_hba.conf entry": Trouble.NOT_LET_IN,
    "is not permitted to log in": Trouble.NOT_LET_IN,
    # The user, or the database.
    '" does not exist': Trouble.NOT_LET_IN,
}
"""Who is not let in is told why in words alone."""


TELLING = (errors.IntegrityError, errors.DataError)
"""Their texts quote the rows that were to be written."""


class QuietPsycopgCursor(psycopg.Cursor[Any]):
    """A cursor whose errors name no value: what is written can be a secret, and is logged."""

    def execute(self, *args: Any, **options: Any) -> QuietPsycopgCursor:
        """See :meth:`psycopg.Cursor.execute`."""
        try:
            return super().execute(*args, **options)
        except TELLING as error:
            _quieten(error)
            raise

    def executemany(self, *args: Any, **options: Any) -> None:
        """See :meth:`psycopg.Cursor.executemany`."""
        try:
            super().executemany(*args, **options)
        except TELLING as error:
            _quieten(error)
            raise


class PromptConnection(psycopg.Connection[Any]):
    """A connection that does not wait for good for a server that is gone without a word.

    One that was stopped keeps its connections: its kernel answers, and nobody else.
    """

    silence_max_s: float = math.inf
    usual_max_s: float = math.inf
    """For so long nothing need come while an answer is waited for; and outside of upgrades."""

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **options: Any) -> T:
        """See :meth:`psycopg.Connection.wait`."""
        try:
            return super().wait(_unless_silent(gen, self.silence_max_s), *args, **options)
        except SilentServer:
            # What was asked for may still come, so nothing else can be asked here.
            self.close()
            raise


class SilentServer(psycopg.OperationalError):
    """The server did not say anything for too long."""


def _unless_silent(gen: Generator[Any, Any, T], silence_max_s: float) -> Generator[Any, Any, T]:
    heard_s = time.perf_counter()
    ready = None
    while time.perf_counter() - heard_s <= silence_max_s:
        try:
            wanted = gen.send(ready)
        except StopIteration as done:
            return cast(T, done.value)
        ready = yield wanted
        if ready:
            heard_s = time.perf_counter()
    raise SilentServer("The server does not answer.")


def _quieten(error: psycopg.Error) -> None:
    # In its place: an error that was raised from it would still lead to it.
    named = error.diag.constraint_name or error.diag.column_name or ""
    error.args = (f"a value was refused: {error.sqlstate} {named}".strip(),)


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
        """Make the pools. The first connection is made when it is needed."""
        at, hosts = addresses.split(url)
        at = at.set(drivername=DRIVER)
        wait_s = max(2, round(busy_timeout_s))
        if len(hosts) > 1:
            # As SQLAlchemy says it. One that hangs is not waited for while there are others.
            at = at.set(host=None, port=None).update_query_dict({"host": [*map(str, hosts)]})
            wait_s = min(wait_s, PASSED_OVER_AFTER_S)
        wait_ms = max(1, round(busy_timeout_s * 1000))
        options = {
            "lock_timeout": f"{wait_ms}ms",
            "idle_in_transaction_session_timeout": f"{max(1, round(idle_timeout_s))}s",
            # Who cancels a commit that waits for a standby is told that it is done.
            "statement_timeout": "0",
            "timezone": "UTC",
        }
        arguments = {
            "connect_timeout": wait_s,
            "application_name": "innkeeper",
            "cursor_factory": QuietPsycopgCursor,
            # Of several addresses, the one of a server that takes writes: the primary.
            "target_session_attrs": "read-write",
            "options": " ".join(f"-c {name}={value}" for name, value in options.items()),
            # A peer that is gone without a word is found out, not waited for.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": wait_ms + 10_000,
        }
        made = Engines(
            reading=engine(
                at, readers_max, busy_timeout_s, arguments, isolation_level="REPEATABLE READ"
            ),
            writing=engine(
                at, WRITERS_MAX, busy_timeout_s, arguments, isolation_level="READ COMMITTED"
            ),
        )
        connect = _connecting(busy_timeout_s + ANSWER_WITHIN_S)
        sa.event.listen(made.reading, "do_connect", connect)
        sa.event.listen(made.writing, "do_connect", connect)
        sa.event.listen(made.reading, "handle_error", _find_out)
        sa.event.listen(made.writing, "handle_error", _find_out)
        sa.event.listen(made.writing, "begin", _begin_writing)
        return made

    def begin_upgrade(self, tx: sa.Connection) -> None:
        """Others wait for the transaction; to alter a large table takes as long as it takes."""
        _raw(tx).silence_max_s = math.inf

    def prepare(self, tx: sa.Connection, *, is_empty: bool) -> None:
        """Nothing to do: texts are compared byte by byte."""

    def end_upgrade(self, tx: sa.Connection) -> None:
        """Be as impatient as ever."""
        raw = _raw(tx)
        raw.silence_max_s = raw.usual_max_s

    def trouble(self, error: Exception) -> Trouble | None:
        """See :class:`Backend`. What comes without a state comes from the way to the server."""
        origin = getattr(error, "orig", error)
        if not isinstance(origin, psycopg.Error):
            return None
        if origin.sqlstate is not None:
            return TROUBLES.get(origin.sqlstate) or CLASSES.get(origin.sqlstate[:2])
        is_of_connection = isinstance(origin, (errors.OperationalError, errors.InterfaceError))
        if not is_of_connection:
            return None
        told = str(origin)
        return next((kind for part, kind in TOLD.items() if part in told), Trouble.GONE)


def _find_out(context: sa.engine.ExceptionContext) -> None:
    # A server that became a standby keeps its connections, which are of no use any more.
    if getattr(context.original_exception, "sqlstate", None) == READ_ONLY:
        context.is_disconnect = True


def _connecting(silence_max_s: float) -> Callable[..., PromptConnection]:
    def do_connect(
        _dialect: Any, _record: Any, arguments: Any, named: dict[str, Any]
    ) -> PromptConnection:
        made = PromptConnection.connect(*arguments, **named)
        made.silence_max_s = made.usual_max_s = silence_max_s
        return made

    return do_connect


def _raw(tx: sa.Connection) -> PromptConnection:
    return cast(PromptConnection, tx.connection.dbapi_connection)


def _begin_writing(connection: sa.Connection) -> None:
    if connection.get_execution_options().get(WITHOUT_TURN):
        return
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ORDER})")
