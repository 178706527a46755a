"""Temporary MariaDB servers on this machine."""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import pymysql
from pymysql.constants import CLIENT

from tests.support.servers import packages
from tests.support.servers.leaving import LEAVING
from tests.support.servers.ports import take_port

USER = "mysql"
START_WITHIN_S = 90.0
FAST = {
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-doublewrite": "0",
    "innodb-flush-method": "nosync",
    "innodb-file-per-table": "0",
    "innodb-stats-persistent": "0",
}
"""Settings for tests that kill no server."""
SAFE = {"innodb-flush-log-at-trx-commit": "1"}


class Mariadb:
    """One server and its databases, on a port of loopback.

    It runs in a folder of its own, which is removed when it is closed.
    """

    def __init__(self, **settings: str) -> None:
        self._server = packages.find("mariadbd", "mariadb-server")
        self.port = take_port()
        self._numbers = itertools.count(1)
        self._copiers: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="innkeeper-mariadb-"))
        packages.hand_over(self.folder, USER)
        self._data = self.folder / "data"
        # A starting server removes other servers' files in a shared temporary folder.
        self._settings = {"tmpdir": str(packages.folder(self.folder / "tmp", USER)), **settings}
        subprocess.run(
            [
                packages.find("mariadb-install-db", "mariadb-server"),
                *("--no-defaults", f"--datadir={self._data}", "--skip-test-db"),
                f"--tmpdir={self.folder / 'tmp'}",
                "--auth-root-authentication-method=normal",
            ],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **packages.account(USER),  # type: ignore[call-overload]
        )

    def start(self, *more: str) -> None:
        """Start it, after a crash too, and wait until it answers."""
        settings = {
            "datadir": str(self._data),
            "port": str(self.port),
            "socket": str(self.folder / "socket"),
            "pid-file": str(self.folder / "pid"),
            "bind-address": "127.0.0.1",
            "max-connections": "300",
            "innodb-buffer-pool-size": "64M",
            "innodb-log-file-size": "64M",
            "skip-log-bin": "",
            **self._settings,
        }
        words = [f"--{name}={value}" if value else f"--{name}" for name, value in settings.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._server, "--no-defaults", *words, *more],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **packages.account(USER),  # type: ignore[call-overload]
            )
        deadline = time.monotonic() + START_WITHIN_S
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text()[-2_000:])
            time.sleep(0.05)

    def answers(self) -> bool:
        """Whether it accepts connections."""
        try:
            self.connect().close()
        except pymysql.Error:
            return False
        return True

    def connect(self) -> pymysql.Connection:
        """Return a connection without Innkeeper's settings."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="root",
            connect_timeout=2,
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
            ssl_disabled=True,
        )

    def url(self, database: str) -> str:
        """Return the URL of one of its databases."""
        return f"mariadb://root@127.0.0.1:{self.port}/{database}"

    def fresh(self) -> str:
        """Create an empty database; returns its URL."""
        name = f"fresh_{next(self._numbers)}"
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def copy_of(self, url: str) -> str:
        """Copy another database; returns the URL of the copy."""
        name, template = f"copy_{next(self._numbers)}", url.rpartition("/")[2]
        if template not in self._copiers:
            self._copiers[template] = self._copier(template)
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
            connection.select_db(name)
            cursor.execute(self._copiers[template])
            while cursor.nextset():
                pass
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove one of its databases."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {url.rpartition('/')[2]}")

    def _copier(self, template: str) -> str:
        """Return the statements that make an empty database a copy of this one."""
        statements = ["SET foreign_key_checks = 0"]
        with self.connect() as connection, connection.cursor() as cursor:
            connection.select_db(template)
            cursor.execute("SHOW TABLES")
            tables = [row[0] for row in cursor.fetchall()]
            for table in tables:
                cursor.execute(f"SHOW CREATE TABLE {table}")
                statements.append(cursor.fetchall()[0][1])
            for table in tables:
                rows = f"SELECT * FROM {template}.{table}"  # noqa: S608 - names of ours
                if cursor.execute(f"{rows} LIMIT 1"):
                    statements.append(f"INSERT INTO {table} {rows}")
        return "; ".join(statements)

    def kill(self) -> None:
        """Kill it, like a power failure."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stop it as an operator does: clients are disconnected, and everything is written."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(START_WITHIN_S)

    def close(self) -> None:
        """Stop it, and remove its folder."""
        # Killed at once: a test process that is slow to end is itself killed, and would leave the
        # server running.
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def shared() -> Mariadb:
    """Return a server shared by all tests that do not kill it."""
    made = Mariadb(**FAST)
    LEAVING.callback(made.close)
    made.start()
    return made
