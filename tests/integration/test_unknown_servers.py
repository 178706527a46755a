"""An agent of another cloud names thousands of servers; the log stays readable."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import httpx
import pytest

from tests.support.agents import WITHIN_S
from tests.support.forked import SOURCE
from tests.support.trust import NOBODY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]
SERVERS = 10_000


def test_ten_thousand_unknown_servers_are_one_line(tmp_path: Path) -> None:
    options = ["--data-dir", str(tmp_path), "--port", "0", "--auth", "none"]
    service = subprocess.Popen(
        [sys.executable, "-m", "innkeeper.main", "serve", *options],
        env={"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"]},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert service.stderr is not None
    first = service.stderr.readline()
    try:
        agents = first.split()[-1] + "/compute/v2.1/os-agents"
        headers = {"x-auth-token": "admin"}
        with httpx.Client(
            headers=headers, timeout=WITHIN_S, trust_env=False, verify=NOBODY
        ) as client:
            named = {"agent": {"name": "rack", "driver": "fake"}}
            agent = client.post(agents, json=named).json()["agent"]
            servers = [str(uuid.UUID(int=number)) for number in range(1, SERVERS + 1)]
            inventories = {"VCPU": {"total": 8}}
            host = {"name": "one", "inventories": inventories, "servers": servers}
            reported = client.put(f"{agents}/{agent['id']}/hosts", json={"hosts": [host]})
            assert reported.status_code == 200, reported.text
    finally:
        service.terminate()
        said = service.communicate(timeout=WITHIN_S)[1]
    (line,) = [each for each in said.splitlines() if "unknown" in each]
    assert "event=unknown_servers" in line
    assert f"count={SERVERS}" in line
    assert line.count("one/00000000-") == 10
    assert f"one/{servers[0]}" in line
