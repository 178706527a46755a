"""Several workers on one port die, stop and are replaced, with little effect on clients."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.databases import DATABASES
from tests.support.forked import SOURCE
from tests.support.service_processes import UNLIMITED, VERSIONS, Started, serve_all
from tests.support.trust import NOBODY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
WITHIN_S = 30.0
WORKERS = 2
ASKED = 12


def settings(folder: Path, kind: str) -> dict[str, str]:
    """No authentication, and a database of this kind."""
    return {"auth": "none", "database_url": DATABASES[kind](folder), **UNLIMITED}


def eventually(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def workers_of(service: Started) -> set[int]:
    """The processes that the supervisor has started, except agents."""
    pid = service.process.pid
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = {int(each) for task in tasks for each in task.read_text().split()}
    return {each for each in children if {b"serve", b"--with-parent"} <= words(each)}


def words(pid: int) -> set[bytes]:
    return set(command(pid).split(b"\0"))


def command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def is_served(service: Started) -> bool:
    """Whether a new connection gets an answer."""
    try:
        return bool(httpx.get(service.http.base_url.join("/healthz"), verify=NOBODY).text == "ok")
    except httpx.TransportError:
        return False


def flavor(name: str) -> dict[str, Any]:
    return {"flavor": {"name": name, "id": name, "ram": 64, "vcpus": 1, "disk": 1}}


def anew(service: Started, method: str, path: str, **more: Any) -> httpx.Response:
    """Send one request on a new connection, to any worker."""
    url = service.http.base_url.join(path)
    headers = {**VERSIONS, "x-auth-token": "admin"}
    return httpx.request(method, url, headers=headers, timeout=WITHIN_S, verify=NOBODY, **more)


def test_workers_are_replaced_and_count_together(tmp_path: Path) -> None:
    with serve_all(tmp_path, 1, settings(tmp_path, "sqlite"), "--workers", "2") as (service,):
        eventually(lambda: len(workers_of(service)) == WORKERS)
        acknowledged: list[str] = []
        is_over = threading.Event()

        def write(writer: int) -> None:
            number = 0
            while not is_over.is_set():
                number += 1
                name = f"flavor-{writer}-{number}"
                with suppress(httpx.TransportError):
                    path = "/compute/v2.1/flavors"
                    answer = anew(service, "POST", path, json=flavor(name))
                    assert answer.status_code == httpx.codes.OK, answer.text
                    acknowledged.append(name)

        with ThreadPoolExecutor(3) as pool:
            writing = [pool.submit(write, number) for number in range(3)]
            eventually(lambda: len(acknowledged) > ASKED)
            before = workers_of(service)
            os.kill(min(before), signal.SIGKILL)
            eventually(lambda: len(workers_of(service) - before) == 1)
            seen = len(acknowledged)
            eventually(lambda: len(acknowledged) > seen + ASKED)
            is_over.set()
            for each in writing:
                each.result()
        assert max(before) in workers_of(service)
        listed = anew(service, "GET", "/compute/v2.1/flavors").json()["flavors"]
        assert set(acknowledged) <= {each["id"] for each in listed}
        for _ in range(ASKED):
            assert anew(service, "GET", "/compute/v2.1/os-aggregates").status_code == 200
        # Any worker answers, and its counts include those of the killed worker.
        reported = [anew(service, "GET", "/metrics").text for _ in range(4)]
        assert {count(each, "/v2.1/os-aggregates", "GET") for each in reported} == {ASKED}
        assert count(reported[0], "/v2.1/flavors", "POST") >= len(acknowledged)
        assert service.stop() == 0


def count(reported: str, path: str, method: str) -> int:
    """How many requests a service reports as successful."""
    begin = "innkeeper_request_seconds_count{"
    lines = [each for each in reported.splitlines() if each.startswith(begin)]
    wanted = (f'path="{path}"', f'method="{method}"', 'status="200"')
    found = [each for each in lines if all(part in each for part in wanted)]
    return sum(int(float(each.rpartition(" ")[2])) for each in found)


def test_a_request_that_is_in_flight_is_answered_at_the_end(tmp_path: Path) -> None:
    with serve_all(tmp_path, 1, settings(tmp_path, "sqlite"), "--workers", "2") as (service,):
        body = {"agent": {"name": "slow", "driver": "fake"}}
        made = service.call("POST", "/compute/v2.1/os-agents", json=body).json()["agent"]
        path = f"/compute/v2.1/os-agents/{made['id']}/work"
        workers = workers_of(service)
        with ThreadPoolExecutor(4) as pool:
            waiting = [
                pool.submit(anew, service, "POST", path, json={"wait_s": 20}) for _ in range(4)
            ]
            time.sleep(1.0)
            assert service.stop() == 0
            assert [each.result().json() for each in waiting] == [{"orders": []}] * 4
        assert not any(map(command, workers))
        assert not is_served(service)


def test_workers_end_without_their_supervisor(tmp_path: Path) -> None:
    with serve_all(tmp_path, 1, settings(tmp_path, "sqlite"), "--workers", "2") as (service,):
        eventually(lambda: len(workers_of(service)) == WORKERS)
        workers = workers_of(service)
        assert refused_beside(service, tmp_path / "other") == (
            2,
            "innkeeper: Cannot listen on '127.0.0.1', port PORT: Address already in use.\n",
        )
        service.process.kill()
        service.process.wait()
        eventually(lambda: not any(b"--with-parent" in command(each) for each in workers))
        assert not is_served(service)


def refused_beside(service: Started, folder: Path) -> tuple[int, str]:
    """The output of a second service on the same port."""
    port = str(service.http.base_url.port)
    other = subprocess.run(
        [
            *(sys.executable, "-m", "innkeeper.main", "serve", "--workers", "2"),
            *("--auth", "none", "--data-dir", str(folder), "--port", port),
        ],
        env={"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    reported = other.stderr.replace(port, "PORT")
    return other.returncode, reported
