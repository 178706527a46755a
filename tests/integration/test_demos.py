"""The demonstrations, as ``make demo-zones`` and ``make demo-pods`` run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 500

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def told_by(module: str) -> str:
    """Run a demonstration, and return its output. It must succeed, and leave no process."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("INNKEEPER_")}
    program = subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env=kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    said, _ = program.communicate(timeout=WITHIN_S)
    assert program.returncode == 0, said
    with pytest.raises(ProcessLookupError):
        os.killpg(program.pid, 0)
    return said


def test_the_demonstration_of_zones_ends_well_and_leaves_no_process() -> None:
    said = told_by("benchmarks.demo_zones")
    assert '"weight": ' in said
    for name in ("root", "east", "west", "edge"):
        assert f"\n    {name}  host-" in said, f"{name} got no server"
    assert "missing_zones: ['east']" in said
    assert "root: 503, Retry-After: " in said
    assert "servers in all zones: 0" in said


def test_the_demonstration_of_pods_ends_well_and_leaves_no_process() -> None:
    said = told_by("benchmarks.demo_pods")
    assert "p1  servers ['web-1']" in said
    assert "p1  volumes ['data']" in said
    assert "p2  servers ['web-2']" in said
    assert "400: The server and the volume are not in the same pod." in said
    assert "servers ['web-1'], missing_pods: ['p2']" in said
    assert "web-2: 503" in said
    assert said.endswith("p2  servers []\n")
