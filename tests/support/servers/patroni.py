"""Temporary PostgreSQL servers under Patroni on this machine: a primary and its standby."""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

import psycopg
import yaml

from tests.support.servers import packages, processes
from tests.support.servers.etcd import Etcd
from tests.support.servers.leaving import LEAVING
from tests.support.servers.ports import take_port
from tests.support.servers.postgresql import PLACE, USER

START_WITHIN_S = 120.0
NODES = 2
PASSWORD = "nobody is asked for it"
TTL_S = 5
LOOP_S = 1
RETRY_S = 2
"""A primary that has not renewed its lease for this long is demoted."""


class Node:
    """One PostgreSQL server and its Patroni."""

    def __init__(self, folder: Path, name: str, etcd: Etcd, *, is_strict: bool) -> None:
        self.name = name
        self.folder = folder
        self.port, self._rest_port = take_port(), take_port()
        self._programs = packages.find("pg_rewind", "postgresql", beside=PLACE).resolve().parent
        self._patroni = packages.find("patroni", "patroni")
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = folder / "patroni.yml"
        self._settings.write_text(yaml.safe_dump(self._config(etcd, is_strict=is_strict)))

    def _config(self, etcd: Etcd, *, is_strict: bool) -> dict[str, Any]:
        own, rest = f"127.0.0.1:{self.port}", f"127.0.0.1:{self._rest_port}"
        return {
            "scope": "innkeeper",
            "name": self.name,
            "restapi": {"listen": rest, "connect_address": rest},
            "etcd": {"host": f"127.0.0.1:{etcd.port}"},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL_S,
                    "loop_wait": LOOP_S,
                    "retry_timeout": RETRY_S,
                    "synchronous_mode": True,
                    "synchronous_mode_strict": is_strict,
                    "postgresql": {
                        "use_pg_rewind": True,
                        "parameters": {"max_connections": 200, "wal_log_hints": "on"},
                    },
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "no-sync"],
            },
            "postgresql": {
                "listen": own,
                "connect_address": own,
                "data_dir": str(self.folder / "data"),
                "bin_dir": str(self._programs),
                "pgpass": str(self.folder / "pgpass"),
                "parameters": {
                    "unix_socket_directories": "",
                    # Otherwise nothing removes the shared memory of a killed server.
                    "dynamic_shared_memory_type": "mmap",
                },
                "authentication": {
                    "superuser": {"username": USER, "password": PASSWORD},
                    "replication": {"username": "replicator", "password": PASSWORD},
                    "rewind": {"username": USER, "password": PASSWORD},
                },
                "pg_hba": [
                    "host all all 127.0.0.1/32 trust",
                    "host replication all 127.0.0.1/32 trust",
                ],
                # A diverged former primary may have to be copied as a whole.
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
            },
        }

    @property
    def log(self) -> str:
        """The end of the log of both."""
        path = self.folder / "log"
        return path.read_text(errors="replace")[-4_000:] if path.exists() else ""

    def start(self) -> None:
        """Start it, after any failure; Patroni gives it the role that is needed."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._patroni, self._settings],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **packages.account(USER),  # type: ignore[call-overload]
            )

    def is_primary(self) -> bool:
        """Whether it answers, and takes writes."""
        return self._says("SELECT NOT pg_is_in_recovery()")

    def is_standby(self) -> bool:
        """Whether it answers, and follows a primary with synchronous commits."""
        return self._says(
            "SELECT pg_is_in_recovery() AND EXISTS (SELECT FROM pg_stat_wal_receiver)"
        )

    def is_ready_to_lead(self) -> bool:
        """Whether it has all acknowledged commits, and may be promoted.

        Synchronous replication is not enough: etcd must list it as the synchronous standby.
        """
        try:
            address = f"http://127.0.0.1:{self._rest_port}/synchronous"
            with urllib.request.urlopen(address, timeout=2) as answer:
                return bool(answer.status == HTTPStatus.OK)
        except (urllib.error.URLError, OSError):
            return False

    def _says(self, question: str) -> bool:
        try:
            with psycopg.connect(self.url("postgres"), connect_timeout=2) as connection:
                row = connection.execute(question).fetchone()
        except psycopg.Error:
            return False
        return row is not None and bool(row[0])

    def url(self, database: str) -> str:
        """Return the URL of one of its databases, whatever the server's role."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def _all(self) -> list[int]:
        assert self._process is not None, "it was never started"
        roots = [self._process.pid]
        reported = self.folder / "data" / "postmaster.pid"
        if reported.exists():
            # Patroni detaches the server that it has started.
            pid = int(reported.read_text().split()[0])
            if Path(f"/proc/{pid}/cwd").exists() and self._is_ours(pid):
                roots.append(pid)
        return processes.families(roots)

    def _is_ours(self, pid: int) -> bool:
        """Whether the pid has not been reused."""
        return Path(f"/proc/{pid}/cwd").resolve() == (self.folder / "data").resolve()

    def is_running(self) -> bool:
        """Whether its Patroni exists, even if paused."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill it, like a power failure, except for the disk's cache."""
        processes.send(self._all(), signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def pause(self) -> None:
        """Pause the server and Patroni, without any notification."""
        processes.send(self._all(), signal.SIGSTOP)

    def resume(self) -> None:
        """Resume both."""
        processes.send(self._all(), signal.SIGCONT)


class Patroni:
    """Two servers, a primary and a standby, and the etcd with their roles.

    A commit waits for the standby's disk. With ``is_strict``, the primary waits while there is no
    standby. Otherwise it continues alone, after etcd records that no other server may be promoted.
    """

    def __init__(self, *, is_strict: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="innkeeper-patroni-"))
        packages.hand_over(self.folder, USER)
        self._numbers = itertools.count(1)
        self.etcd = Etcd()
        self.nodes = [
            self._node(f"node{number}", is_strict=is_strict) for number in range(1, NODES + 1)
        ]

    def _node(self, name: str, *, is_strict: bool) -> Node:
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        packages.hand_over(folder, USER)
        return Node(folder, name, self.etcd, is_strict=is_strict)

    @property
    def primary(self) -> Node:
        """The server that takes writes; there is none during a failover."""
        self.wait(lambda: any(each.is_primary() for each in self.nodes))
        return next(each for each in self.nodes if each.is_primary())

    @property
    def standby(self) -> Node:
        """The server beside :attr:`primary`, whatever its state."""
        primary = self.primary
        return next(each for each in self.nodes if each is not primary)

    def start(self) -> None:
        """Start all, and wait until the standby follows."""
        self.etcd.start()
        first, *others = self.nodes
        first.start()
        self.wait(first.is_primary)
        for each in others:
            each.start()
        self.wait_whole()

    def wait_whole(self) -> None:
        """Wait until commits are on both disks, so that either server may be lost."""
        self.wait(lambda: any(each.is_primary() for each in self.nodes))
        self.wait(lambda: any(each.is_ready_to_lead() for each in self.nodes))

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Wait until ``is_so`` returns true, up to a time limit."""
        deadline = time.monotonic() + START_WITHIN_S
        while not is_so():
            if time.monotonic() > deadline:
                raise RuntimeError("\n".join(f"{each.name}: {each.log}" for each in self.nodes))
            time.sleep(0.05)

    def url(self, database: str) -> str:
        """Return the URL of one of its databases, with all nodes."""
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.nodes)
        return f"postgresql://{USER}@{hosts}/{database}"

    def fresh(self) -> str:
        """Create an empty database; returns its URL."""
        name = f"fresh_{next(self._numbers)}"
        with psycopg.connect(self.primary.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def close(self) -> None:
        """Stop all, and remove their folders."""
        for each in self.nodes:
            if each.is_running():
                each.kill()
        self.etcd.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def shared() -> Patroni:
    """Return a cluster shared by all tests that leave it intact, or repair it."""
    made = Patroni()
    LEAVING.callback(made.close)
    made.start()
    return made
