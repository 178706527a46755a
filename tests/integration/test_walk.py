"""The walk of a boot in ARCHITECTURE.md, against a real boot."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from structlog.testing import capture_logs

from innkeeper import wiring
from innkeeper.settings import load
from tests.support.asgi_client import AsgiClient
from tests.tidy.tree import ROOT, SOURCE

ADMIN = {"X-Auth-Token": "admin"}
OWNER = {"X-Auth-Token": "user:project", "OpenStack-API-Version": "compute 2.37"}
FLAVOR = {"id": "v1", "name": "v1", "ram": 64, "vcpus": 1, "disk": 1}
HOST = {
    "name": "h1",
    "inventories": {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 8000}, "DISK_GB": {"total": 99}},
}
FILES_MAX = 15
"""With more files, the way of a request could not be followed."""
NUMERALS = {12: "twelve", 13: "thirteen", 14: "fourteen", 15: "fifteen"}
STEP = re.compile(r"^\| \d+ \| `([\w/]+\.py)`", re.MULTILINE)


def test_a_boot_passes_the_files_of_the_walk_in_their_order(tmp_path: Path) -> None:
    journey = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("\n### ")[1]
    walk = STEP.findall(journey)
    assert walk
    assert len(walk) <= FILES_MAX
    assert f"These {NUMERALS[len(walk)]} files" in journey
    # Other threads work at the same time, so other calls may lie between those of the boot.
    called = iter(files_of_a_boot(tmp_path))
    assert [path for path in walk if path not in called] == []


def files_of_a_boot(folder: Path) -> list[str]:
    """The source files with a function that a boot calls, in order."""
    called: list[str] = []

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        del arg
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(SOURCE)):
            called.append(Path(path).relative_to(SOURCE).as_posix())

    environ = {"INNKEEPER_AUTH": "none", "INNKEEPER_DATA_DIR": str(folder)}
    # Threads inherit the profiler at their start, so it is set before the service starts.
    with profiled(profile), capture_logs():
        service = wiring.Service(load(None, environ))
        service.start()
        try:
            with AsgiClient(service.app) as client:
                furnish(client)
                called.clear()
                body = {"server": {"name": "s", "flavorRef": "v1", "networks": "none"}}
                answer = client.post("/compute/v2.1/servers", json=body, headers=OWNER)
                assert answer.status_code == 202, answer.text
                return called.copy()
        finally:
            service.stop()


@contextmanager
def profiled(profile: Any) -> Iterator[None]:
    before = threading.getprofile()
    threading.setprofile(profile)
    try:
        yield
    finally:
        threading.setprofile(before)
        sys.setprofile(None)


def furnish(client: AsgiClient) -> None:
    """Make a flavor and a host."""

    def ask(method: str, path: str, body: Any) -> Any:
        answer = client.request(method, f"/compute/v2.1{path}", json=body, headers=ADMIN)
        assert answer.is_success, answer.text
        return answer.json()

    ask("POST", "/flavors", {"flavor": FLAVOR})
    agent = ask("POST", "/os-agents", {"agent": {"name": "a", "driver": "fake"}})["agent"]
    ask("PUT", f"/os-agents/{agent['id']}/hosts", {"hosts": [HOST]})
