"""Fills, starts, watches and stops services, each in a separate process."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import fleet as fleets
from benchmarks.fleet import Fleet
from innkeeper import wiring
from innkeeper.settings import load
from innkeeper.store.transactions import Store

START_WITHIN_S = 120.0
STOP_WITHIN_S = 40.0
LOOK_AGAIN_S = 0.02
A_DAY_S = "86400"
UNLIMITED = "-1"
SETTINGS = {
    # The measured project boots as many servers as it can.
    "INNKEEPER_QUOTA_INSTANCES": UNLIMITED,
    "INNKEEPER_QUOTA_CORES": UNLIMITED,
    "INNKEEPER_QUOTA_RAM": UNLIMITED,
}
ALIVE_WITHOUT_AGENT = {
    # Without an agent there are no heartbeats. The fleet's hosts were up when they were created.
    "INNKEEPER_SERVICE_DOWN_TIME_S": A_DAY_S,
    "INNKEEPER_ORDER_TIMEOUT_S": A_DAY_S,
}
LOG = "service.log"
SOCKETS = Path("/proc/net/tcp")
"""A file with one line per socket: number, local address, remote address, state, and more."""
LISTENING = "0A"


@dataclass(frozen=True, slots=True)
class Started:
    """A service that is ready."""

    port: int
    process: subprocess.Popen[bytes]
    ready_after_s: float

    def resident_mb(self) -> float:
        """Return the resident memory of the process, in MB."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("Linux reports the memory of every process")

    def busy_s(self) -> float:
        """Return the processor seconds of all threads of the process and its workers."""
        return sum(self.busy_by_process().values())

    def busy_by_process(self) -> dict[int, float]:
        """Return the processor seconds of the process and of each of its workers, by process id."""
        return {pid: _busy_ns(pid) / 1e9 for pid in _with_children(self.process.pid)}


def _with_children(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from _with_children(int(child))


def _busy_ns(pid: int) -> int:
    # Each file has three numbers: nanoseconds on a processor, nanoseconds of waiting, turns.
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in threads)


def database_at(url: str | None) -> dict[str, str]:
    """Return the setting for a database at ``url``; an empty map without ``url``."""
    return {} if url is None else {"INNKEEPER_DATABASE_URL": url}


def store_in(directory: Path, url: str | None = None) -> Store:
    """Open the store of a service with this data directory, or with the database at ``url``."""
    overrides = {"data_dir": str(directory), "database_url": url}
    return wiring.open_store(load(None, environ={}, overrides=overrides))


def filled(directory: Path, fleet: Fleet, url: str | None = None) -> None:
    """Create a new database with the fleet."""
    store = store_in(directory, url)
    try:
        fleets.fill(store, fleet, wiring.now())
    finally:
        store.dispose()


@contextmanager
def started(
    directory: Path, extra: Mapping[str, str] | None = None, *arguments: str, workers: int = 1
) -> Iterator[Started]:
    """Serve the database in ``directory`` until the block ends, with this many processes.

    The log is written to a file in that folder, because the time for writing it is measured too.
    """
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.served", "serve", "--auth", "none"]
    command += ["--data-dir", str(directory), "--port", str(port), *arguments]
    command += ["--workers", str(workers)]
    settings = ALIVE_WITHOUT_AGENT if extra is None else extra
    begun = time.perf_counter()
    with (directory / LOG).open("ab") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, **SETTINGS, **settings}
        )
    try:
        _wait_ready(process, port, directory / LOG, workers)
        yield Started(port, process, time.perf_counter() - begun)
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a process as an operator does; kill it only if it does not stop."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """Return the number of a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _wait_ready(process: subprocess.Popen[bytes], port: int, log: Path, workers: int) -> None:
    deadline = time.perf_counter() + START_WITHIN_S
    while time.perf_counter() < deadline and process.poll() is None:
        # Each worker listens on a separate socket once it is ready.
        if _listeners(port) == workers and _is_ready(port):
            return
        time.sleep(LOOK_AGAIN_S)
    last_lines = log.read_text(errors="replace").splitlines()[-20:]
    raise RuntimeError("The service did not start:\n" + "\n".join(last_lines))


def _listeners(port: int) -> int:
    """Return the number of sockets that listen on a port of this machine."""
    lines = [line.split() for line in SOCKETS.read_text().splitlines()[1:]]
    end = f":{port:04X}"
    return sum(words[1].endswith(end) and words[3] == LISTENING for words in lines)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()
