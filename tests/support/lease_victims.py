"""The program of processes that are killed while they run a periodic task for leases.

It reads lines of JSON: the folder of a cloud, the time, the names of periodic tasks, and after how
many statements the process dies. It forks for each line, and answers a line with the exit status
of the fork. So a process dies as by ``kill -9``, with its connections, in the middle of a
transaction or between two.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.slices import Leasing, Settings
from innkeeper.engine.periodic import PeriodicTasks
from innkeeper.engine.writer import Writer
from tests.support.clouds import Cloud, Numbers

STOP_S = 10.0
NEVER = 0
"""With this number of statements, the process survives."""
KILLED = -signal.SIGKILL
NOWHERE = "http://127.0.0.1:9/"
"""Notifications stay in the store, where tests count them."""
TASKS = ("preemption", "lease_events")


def _serve() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            # Logs must not get between the answers.
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            _live(asked)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _live(asked: Mapping[str, Any]) -> None:
    """Carry out what is due, until nothing is left or the process dies."""
    now, statements = datetime.fromisoformat(asked["now"]), asked["statements"]
    cloud = Cloud(Path(asked["folder"]), Numbers())
    writer = Writer(cloud.store, cloud.executor)
    writer.start()
    settings = Settings(leasing=Leasing(lease_webhook_url=NOWHERE))
    periodic = PeriodicTasks(settings, cloud.store, writer, lambda: now, Numbers())
    tasks = {each.name: each for each in periodic.tasks()}
    numbers = count(1)

    def before(*_: Any) -> None:
        if next(numbers) == statements:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(sa.Engine, "before_cursor_execute", before)
    for name in asked["tasks"]:
        tasks[name].work()
    writer.stop(STOP_S)


class Victims:
    """Starts such processes."""

    def __init__(self) -> None:
        words = [sys.executable, "-m", "tests.support.lease_victims"]
        root = Path(__file__).resolve().parents[2]
        self._program = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
        )

    def run(
        self, folder: Path, now: datetime, statements: int = NEVER, tasks: Sequence[str] = TASKS
    ) -> int:
        """Run a process to its end; return its exit status."""
        asked = {
            "folder": str(folder),
            "now": now.isoformat(),
            "statements": statements,
            "tasks": list(tasks),
        }
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps(asked) + "\n")
        self._program.stdin.flush()
        return int(self._program.stdout.readline())

    def stop(self) -> None:
        """End the program."""
        self._program.communicate()


if __name__ == "__main__":
    _serve()
