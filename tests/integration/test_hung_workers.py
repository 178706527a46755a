"""Hung workers are replaced. Workers that merely wait are not replaced."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.integration.test_workers import anew, eventually, flavor, settings, workers_of
from tests.support.servers import postgresql
from tests.support.servers.postgresql import Postgresql
from tests.support.service_processes import Started, serve_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
TIMEOUT_S = 2.0
LONG_S = 2.5 * TIMEOUT_S
BUSY_S = 10.0
LISTENING = "0A"
ENDLESS = "tests.support.hanging_filter"


@contextmanager
def two_workers(
    folder: Path, given: dict[str, str], *options: str
) -> Iterator[tuple[Started, set[int]]]:
    """A service and its two workers, which both send heartbeats."""
    given = {**given, "worker_timeout_s": str(TIMEOUT_S)}
    with serve_all(folder, 1, given, "--workers", "2", *options) as (service,):
        # A listening worker sends a heartbeat within a second.
        eventually(lambda: len(workers_of(service)) == len(listeners(service)) == 2)
        time.sleep(TIMEOUT_S / 2)
        yield service, workers_of(service)


def listeners(service: Started) -> set[str]:
    """The listening sockets of the service's workers."""
    port = f":{service.http.base_url.port:04X}"
    rows = [each.split() for each in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {each[9] for each in rows if each[1].endswith(port) and each[3] == LISTENING}


def hung(service: Started) -> list[str]:
    """The log lines about killed workers."""
    log = service.log.read_text().splitlines()
    return [line for line in log if "event=worker_hung" in line]


def replaced(service: Started) -> int:
    """The metric of killed workers."""
    name = 'innkeeper_workers_replaced_total{why="hung"} '
    output = anew(service, "GET", "/metrics").text.splitlines()
    return sum(int(float(line.removeprefix(name))) for line in output if line.startswith(name))


def suspend(pids: Sequence[int]) -> None:
    """Pause processes and resume them, like a machine that was suspended."""
    for each in pids:
        os.kill(each, signal.SIGSTOP)
    time.sleep(LONG_S)
    for each in pids:
        os.kill(each, signal.SIGCONT)
        time.sleep(TIMEOUT_S / 4)


def has_host(service: Started) -> bool:
    """Whether the agent has reported a host."""
    found = anew(service, "GET", "/compute/v2.1/os-hypervisors").json()["hypervisors"]
    return [each["state"] for each in found] == ["up"]


def test_workers_that_hang_are_replaced(tmp_path: Path) -> None:
    given = settings(tmp_path, "sqlite")
    given["default_host_filters"] = f"ComputeFilter,{ENDLESS}"
    with two_workers(tmp_path, given, "--demo-hosts", "1") as (service, before):
        # The supervisor resumes first: it finds every heartbeat late.
        suspend([service.process.pid, *before])
        time.sleep(TIMEOUT_S)
        assert (workers_of(service), hung(service)) == (before, [])
        # Then only one worker is paused.
        stopped, other = sorted(before)
        os.kill(stopped, signal.SIGSTOP)
        eventually(lambda: len(workers_of(service) - before) == 1)
        (line,) = hung(service)
        assert f"pid={stopped} " in line
        assert "stopped" in line
        assert other in workers_of(service)
        eventually(lambda: replaced(service) == 1)
        # A worker whose decision never ends.
        path = "/compute/v2.1/flavors"
        assert anew(service, "POST", path, json=flavor("small")).status_code == httpx.codes.OK
        eventually(lambda: has_host(service))
        known = before | workers_of(service)
        boot = {"server": {"name": "one", "flavorRef": "small", "networks": "none"}}
        with pytest.raises(httpx.TransportError):
            anew(service, "POST", "/compute/v2.1/servers", json=boot)
        eventually(lambda: len(workers_of(service) - known) == 1)
        assert "writer thread" in hung(service)[-1]
        log = service.log.read_text()
        assert log.count("event=decisions_stuck") == 1
        assert "hanging_filter.py" in log


@pytest.fixture
def server() -> Iterator[Postgresql]:
    made = Postgresql(**postgresql.FAST)
    made.start()
    yield made
    made.close()


def test_workers_that_wait_for_their_database_are_not_replaced(
    tmp_path: Path, server: Postgresql
) -> None:
    given = {"auth": "none", "database_url": server.fresh(), "busy_timeout_s": str(BUSY_S)}
    with two_workers(tmp_path, given) as (service, before):
        statuses: list[int] = []

        def write() -> None:
            answer = anew(service, "POST", "/compute/v2.1/flavors", json=flavor("one"))
            statuses.append(answer.status_code)

        server.pause()
        try:
            writing = threading.Thread(target=write)
            writing.start()
            time.sleep(LONG_S)
            assert statuses == []
        finally:
            server.resume()
        writing.join()
        assert statuses == [httpx.codes.OK]
        assert workers_of(service) == before
        assert hung(service) == []
