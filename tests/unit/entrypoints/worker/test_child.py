"""A child is restarted when it dies, and stopped with its parent."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from innkeeper.entrypoints.worker.child import RESTART_FIRST_S, Child

WITHIN_S = 15.0
LIVING = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).joinpath(str(os.getpid())).touch()
time.sleep(60)
"""


def eventually(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s, "It never came to be."
        time.sleep(0.02)


def test_a_child_is_restarted_and_stopped(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", LIVING, str(tmp_path)], os.environ)
    child.start()
    eventually(lambda: len(list(tmp_path.iterdir())) == 1)
    (first,) = (int(path.name) for path in tmp_path.iterdir())
    os.kill(first, signal.SIGKILL)
    eventually(lambda: len(list(tmp_path.iterdir())) == 2)
    child.stop()
    for path in tmp_path.iterdir():
        assert not Path(f"/proc/{path.name}").exists()


def test_a_program_that_cannot_be_started_is_retried(tmp_path: Path) -> None:
    program, starts = tmp_path / "program", tmp_path / "starts"
    starts.mkdir()
    child = Child([str(program), str(starts)], os.environ, silence_max_s=60.0)
    child.start()
    # By then, a first attempt has failed, because it is made at once.
    time.sleep(RESTART_FIRST_S / 2)
    script = tmp_path / "script"
    script.write_text(f"#!{sys.executable}\n{LIVING}")
    script.chmod(0o700)
    script.rename(program)
    eventually(lambda: len(list(starts.iterdir())) == 1)
    child.stop()
