"""Temporary PostgreSQL servers on this machine."""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import psycopg

from tests.support.servers import packages
from tests.support.servers.leaving import LEAVING
from tests.support.servers.ports import take_port
from tests.support.servers.processes import families, send

USER = "postgres"
PLACE = "usr/lib/postgresql/*/bin"
START_WITHIN_S = 90.0
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""Settings for tests that kill no server."""
SAFE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


class Postgresql:
    """One server and its databases, on a port of loopback.

    It runs in a folder of its own, which is removed when it is closed.
    """

    def __init__(self, **settings: str) -> None:
        self._programs = packages.find("initdb", "postgresql", beside=PLACE).parent
        self.port = take_port()
        self._settings = settings
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="innkeeper-postgresql-"))
        packages.hand_over(self.folder, USER)
        self._data = self.folder / "data"
        subprocess.run(
            [
                self._programs / "initdb",
                *("-D", self._data, "-U", USER, "--auth=trust", "-E", "UTF8"),
                *("--locale=C.UTF-8", "--no-sync", "--no-instructions"),
            ],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **packages.account(USER),  # type: ignore[call-overload]
        )

    def start(self) -> None:
        """Start it, after a crash too, and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "200",
            # Otherwise nothing removes the shared memory of a killed server.
            "dynamic_shared_memory_type": "mmap",
            **self._settings,
        }
        words = [word for item in settings.items() for word in ("-c", "=".join(item))]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *words],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **packages.account(USER),  # type: ignore[call-overload]
            )
        deadline = time.monotonic() + START_WITHIN_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text()[-2_000:])
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def url(self, database: str) -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def fresh(self) -> str:
        """Create an empty database; returns its URL."""
        name = f"fresh_{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def copy_of(self, url: str) -> str:
        """Copy another database, which must have no connections; returns the URL of the copy."""
        name, template = f"copy_{next(self._numbers)}", url.rpartition("/")[2]
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            # Files are copied directly, because a copy through the log takes three times as long.
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Drop one of its databases, with all its connections."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    def kill(self) -> None:
        """Kill it, like a power failure."""
        assert self._process is not None, "it was never started"
        # The processes of its connections end by themselves.
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Pause all its processes."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume them."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "it was never started"
        # Each process of a connection has a session of its own, so it is found by its parent.
        send(families([self._process.pid]), number)

    def stop(self) -> None:
        """Stop it as an operator does: clients are disconnected, and everything is written."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(START_WITHIN_S)

    def close(self) -> None:
        """Stop it, and remove its folder."""
        # Stopped at once: a test process that is slow to end is killed, and would leave the
        # server running.
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def shared() -> Postgresql:
    """Return a server shared by all tests that do not kill it."""
    made = Postgresql(**FAST)
    LEAVING.callback(made.close)
    made.start()
    return made
