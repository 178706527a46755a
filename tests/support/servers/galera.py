"""Temporary Galera clusters of MariaDB on this machine."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pymysql

from tests.support.servers import packages
from tests.support.servers.leaving import LEAVING
from tests.support.servers.ports import take_port

USER = "mysql"
START_WITHIN_S = 120.0
LIBRARY = "libgalera_smm.so"
LIBRARY_PLACE = "usr/lib*/galera*"
NODES = 3
RECOVER = ("--wsrep-recover", "--wsrep-cluster-address=gcomm://")
POSITION = re.compile(r"Recovered position:? ?([0-9a-f-]+):(-?\d+)")
BASIC = {
    "bind-address": "127.0.0.1",
    "max-connections": "300",
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "16M",
    "innodb-flush-log-at-trx-commit": "1",
    "skip-log-bin": "",
}
CLUSTERED = {
    "wsrep-on": "ON",
    "wsrep-sst-method": "rsync",
    "binlog-format": "ROW",
    "innodb-autoinc-lock-mode": "2",
}
SWIFT = {
    "evs.keepalive_period": "PT0.2S",
    "evs.inactive_check_period": "PT0.1S",
    "evs.suspect_timeout": "PT3S",
    "evs.inactive_timeout": "PT5S",
    "evs.install_timeout": "PT5S",
    "gmcast.peer_timeout": "PT3S",
    "pc.announce_timeout": "PT1S",
    "gcache.size": "32M",
}
"""The cluster evicts a node that is silent for three seconds. A shorter timeout would evict healthy
nodes of a busy machine."""


def _run(words: list[str | Path], folder: Path) -> str:
    """Run a program as the servers' user; returns its output."""
    done = subprocess.run(
        words,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        **packages.account(USER),  # type: ignore[call-overload]
    )
    return str(done.stdout, errors="replace")


def _words(settings: dict[str, str]) -> list[str]:
    return [f"--{name}={value}" if value else f"--{name}" for name, value in settings.items()]


class Node:
    """One server of a cluster, in a folder of its own.

    After any failure :meth:`start` restores it as Debian's unit does: it determines the position
    of its data, and gets the rest from the other nodes.
    """

    def __init__(self, folder: Path, name: str, settings: dict[str, str]) -> None:
        self.name = name
        self.folder = folder
        self.data = folder / "data"
        self.port, self.group_port = take_port(), take_port()
        self._server = packages.find("mariadbd", "mariadb-server")
        # A starting server removes other servers' files in a shared temporary folder.
        self._settings = {"tmpdir": str(packages.folder(folder / "tmp", USER)), **settings}
        self._transfer_port, self._state_port = take_port(), take_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None, "it was never started"
        return self._process.pid

    @property
    def log(self) -> str:
        """The end of its log."""
        return (self.folder / "log").read_text(errors="replace")[-4_000:]

    def start(self, group: str) -> None:
        """Start it and join ``group``; an empty one makes it the first of a new cluster."""
        uuid, seqno = self.position()
        options = {
            **SWIFT,
            "gmcast.listen_addr": f"tcp://127.0.0.1:{self.group_port}",
            "ist.recv_addr": f"127.0.0.1:{self._transfer_port}",
        }
        settings = {
            "wsrep-provider-options": ";".join(f"{n}={value}" for n, value in options.items()),
            "wsrep-cluster-name": "innkeeper",
            "wsrep-cluster-address": f"gcomm://{group}",
            "wsrep-node-name": self.name,
            "wsrep-node-address": f"127.0.0.1:{self.group_port}",
            "wsrep-node-incoming-address": f"127.0.0.1:{self.port}",
            "wsrep-sst-receive-address": f"127.0.0.1:{self._state_port}",
            "wsrep-start-position": f"{uuid}:{seqno}",
        }
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._server, "--no-defaults", *_words(self._own() | settings)],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **packages.account(USER),  # type: ignore[call-overload]
            )

    def _own(self) -> dict[str, str]:
        return {
            "datadir": str(self.data),
            "port": str(self.port),
            "socket": str(self.folder / "socket"),
            "pid-file": str(self.folder / "pid"),
            "wsrep-provider": str(packages.find(LIBRARY, "galera-4", beside=LIBRARY_PLACE)),
            **BASIC,
            **CLUSTERED,
            **self._settings,
        }

    def position(self) -> tuple[str, int]:
        """Return the cluster id of the node's data, and its position in the cluster's history."""
        state = self.data / "grastate.dat"
        if not state.exists():
            return "", -1
        reported = dict(re.findall(r"^(\w+):\s*(\S+)$", state.read_text(), re.MULTILINE))
        if int(reported["seqno"]) >= 0:
            return reported["uuid"], int(reported["seqno"])
        # The node did not write its position, so it is recovered from InnoDB.
        told_log = _run(
            [self._server, "--no-defaults", *_words(self._own()), *RECOVER], self.folder
        )
        found = POSITION.findall(told_log)
        return (found[-1][0], int(found[-1][1])) if found else ("", -1)

    def make_first(self) -> None:
        """Permit it to bootstrap the cluster, even if it was not the last node to stop."""
        state = self.data / "grastate.dat"
        text = state.read_text()
        state.write_text(re.sub(r"safe_to_bootstrap: 0", "safe_to_bootstrap: 1", text))

    def connect(self, database: str | None = None) -> pymysql.Connection:
        """Return a connection without Innkeeper's settings."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="root",
            connect_timeout=2,
            read_timeout=5,
            autocommit=True,
            database=database,
            ssl_disabled=True,
        )

    def status(self, name: str) -> str:
        """Return one of its ``wsrep_`` states, or an empty text if it does not answer."""
        try:
            with self.connect() as connection, connection.cursor() as cursor:
                cursor.execute("SHOW GLOBAL STATUS LIKE %s", [f"wsrep_{name}"])
                row = cursor.fetchone()
        except pymysql.Error:
            return ""
        return str(row[1]) if row else ""

    def is_synced(self) -> bool:
        """Whether it belongs to the cluster and has all its data."""
        return self.status("ready") == "ON" and self.status("local_state_comment") == "Synced"

    def is_running(self) -> bool:
        """Whether its process exists, even if paused."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill it, like a power failure, except for the disk's cache."""
        self._signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def pause(self) -> None:
        """Pause it; its connections stay open without answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it."""
        self._signal(signal.SIGCONT)

    def cut_off(self) -> None:
        """Isolate it from the other nodes; clients still reach it."""
        self._isolate(1)

    def reconnect(self) -> None:
        """End the isolation."""
        self._isolate(0)

    def _isolate(self, whether: int) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SET GLOBAL wsrep_provider_options = 'gmcast.isolate={whether}'")

    def _signal(self, number: int) -> None:
        # Includes its child programs that copy data to or from another node.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def stop(self) -> None:
        """Stop it normally."""
        if self.is_running():
            self.resume()
            self._signal(signal.SIGTERM)
            assert self._process is not None
            try:
                self._process.wait(START_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.kill()


class Galera:
    """A cluster of three nodes on ports of loopback, which certify each other's writes.

    The nodes start as copies of one folder, so that no state transfer is needed.
    """

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="innkeeper-galera-"))
        packages.hand_over(self.folder, USER)
        self._numbers = itertools.count(1)
        self.nodes = [self._node(f"node{number}", settings) for number in range(1, NODES + 1)]

    def _node(self, name: str, settings: dict[str, str]) -> Node:
        return Node(packages.folder(self.folder / name, USER), name, settings)

    @property
    def group(self) -> str:
        """The cluster address of the nodes."""
        return ",".join(f"127.0.0.1:{each.group_port}" for each in self.nodes)

    def start(self) -> None:
        """Start all for the first time."""
        first = self.nodes[0]
        self._install(first)
        first.start("")
        self.wait(first.is_synced)
        # Its folder then contains the id of the cluster's history.
        first.stop()
        for each in self.nodes[1:]:
            _run(["cp", "-r", first.data, each.data], self.folder)
            (each.data / "galera.cache").unlink(missing_ok=True)
        self.bootstrap()

    def _install(self, node: Node) -> None:
        _run(
            [
                packages.find("mariadb-install-db", "mariadb-server"),
                *("--no-defaults", f"--datadir={node.data}", "--skip-test-db"),
                f"--tmpdir={node.folder / 'tmp'}",
                "--auth-root-authentication-method=normal",
            ],
            node.folder,
        )

    def bootstrap(self) -> None:
        """Start all after a full stop: first the node with the newest data."""
        assert not any(each.is_running() for each in self.nodes)
        first = max(self.nodes, key=lambda each: each.position()[1])
        first.make_first()
        for each in self.nodes:
            # Otherwise it waits for the nodes of its last cluster.
            (each.data / "gvwstate.dat").unlink(missing_ok=True)
        first.start("")
        self.wait(first.is_synced)
        for each in self.nodes:
            if each is not first:
                # All start at once and join the first node. Otherwise they wait for each other.
                each.start(f"127.0.0.1:{first.group_port}")
        self.wait_whole()

    def restart(self, node: Node) -> None:
        """Start a killed node again; :meth:`wait_whole` waits until it has joined."""
        node.start(self.group)

    def wait_whole(self) -> None:
        """Wait until all nodes are in one cluster with the same data."""
        self.wait(lambda: all(each.is_synced() for each in self.nodes))
        size = str(len(self.nodes))
        self.wait(lambda: all(each.status("cluster_size") == size for each in self.nodes))

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
        return f"mariadb://root@{hosts}/{database}"

    def fresh(self) -> str:
        """Create an empty database; returns its URL."""
        name = f"fresh_{next(self._numbers)}"
        node = next(each for each in self.nodes if each.is_synced())
        with node.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def close(self) -> None:
        """Stop all, and remove their folders."""
        for each in self.nodes:
            if each.is_running():
                each.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def shared() -> Galera:
    """Return a cluster shared by all tests that leave it intact, or repair it."""
    made = Galera()
    LEAVING.callback(made.close)
    made.start()
    return made
