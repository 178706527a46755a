"""Keeps another program running as a child process."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import structlog

from innkeeper.entrypoints.worker.heartbeat import STUCK

LOG = structlog.get_logger("innkeeper.worker")
RESTART_FIRST_S = 0.5
RESTART_MAX_S = 30.0
STEADY_S = 60.0
"""After a program has run for this number of seconds, its next restart has the shortest pause
again."""
LOOK_S = 0.2
STOP_S = 10.0
HEARTBEAT, INSTEAD_OF = "--heartbeat", "--instead-of"
"""Options of a supervised program: the pipe for its heartbeats, and how its predecessor ended."""
DEAD, HUNG = "dead", "hung"
READ_MAX = 65_536


class Child:
    """A program that is started, restarted after it dies, and stopped when this process stops.

    The program has ``stop_s`` seconds to stop before it is killed. ``died`` is called with the pid
    of each process that has ended. If ``silence_max_s`` is set, the program must keep sending
    heartbeats after its first heartbeat. If it sends no heartbeat for ``silence_max_s`` seconds, or
    reports that it is stuck, it is killed and restarted.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        name: str = "child",
        stop_s: float = STOP_S,
        died: Callable[[int], object] | None = None,
        silence_max_s: float | None = None,
    ) -> None:
        self._name = name
        self._command = list(command)
        self._environ = dict(environ)
        self._stop_s = stop_s
        self._died = died
        self._silence_max_s = silence_max_s
        self._last_end: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the program, and keep it running."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ask the program to stop, without waiting."""
        self._stop.set()

    def stop(self) -> None:
        """Stop the program. If it does not stop in time, kill it."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(self._stop_s + RESTART_FIRST_S)

    def _run(self) -> None:
        pause_s = RESTART_FIRST_S
        while not self._stop.is_set():
            lived_s = self._run_once()
            if self._stop.is_set():
                return
            pause_s = RESTART_FIRST_S if lived_s >= STEADY_S else min(2 * pause_s, RESTART_MAX_S)
            LOG.warning(
                "child_died", name=self._name, lived_s=round(lived_s, 1), again_in_s=pause_s
            )
            self._stop.wait(pause_s)

    def _run_once(self) -> float:
        """Run one process until it ends. Returns the approximate number of seconds that it ran."""
        try:
            pipe = _HeartbeatPipe(self._silence_max_s)
        except OSError as error:
            return self._not_started(error)
        with pipe:
            try:
                child = self._spawn(pipe)
            except OSError as error:
                return self._not_started(error)
            self._last_end = DEAD
            looks = 0
            while child.poll() is None and not self._stop.wait(LOOK_S):
                looks += 1
                why = pipe.why_hung()
                if why is not None:
                    self._kill(child, why)
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(self._stop_s)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        if self._died is not None:
            self._died(child.pid)
        return looks * LOOK_S

    def _not_started(self, error: OSError) -> float:
        # This may be temporary, such as too many processes, or a program that is being replaced.
        LOG.error("child_not_begun", name=self._name, error=str(error))
        return 0.0

    def _spawn(self, pipe: _HeartbeatPipe) -> subprocess.Popen[bytes]:
        command = list(self._command)
        if pipe.writing is not None:
            command += [HEARTBEAT, str(pipe.writing)]
            command += [] if self._last_end is None else [INSTEAD_OF, self._last_end]
        child = subprocess.Popen(  # noqa: S603 - our own
            command,
            env=self._environ,
            # The child has its own process group, so that signals from the terminal reach only this
            # process.
            process_group=0,
            pass_fds=() if pipe.writing is None else (pipe.writing,),
        )
        pipe.hand_over()
        return child

    def _kill(self, child: subprocess.Popen[bytes], why: str) -> None:
        LOG.error("worker_hung", name=self._name, pid=child.pid, why=why, state=_state(child.pid))
        # Kill the process at once, because a hung process does not react to SIGTERM.
        child.send_signal(signal.SIGKILL)
        self._last_end = HUNG


class _HeartbeatPipe:
    """The pipe with the heartbeats of one process.

    Silence is counted in checks, not in clock time. Otherwise, a process would appear silent after
    the machine was suspended or the supervisor was stopped.
    """

    def __init__(self, silence_max_s: float | None) -> None:
        self.writing: int | None = None
        self._reading: int | None = None
        self._has_begun = False
        self._looks = 0
        self._looks_max = 0.0
        if silence_max_s is not None:
            self._looks_max = silence_max_s / LOOK_S
            self._reading, self.writing = os.pipe()
            os.set_blocking(self._reading, False)

    def __enter__(self) -> _HeartbeatPipe:
        return self

    def __exit__(self, *_: object) -> None:
        self.hand_over()
        if self._reading is not None:
            os.close(self._reading)

    def hand_over(self) -> None:
        """Close this process's copy of the writing end, which the program has inherited."""
        if self.writing is not None:
            os.close(self.writing)
            self.writing = None

    def why_hung(self) -> str | None:
        """Check the pipe once. Returns the reason to kill the program, or ``None``."""
        if self._reading is None:
            return None
        beats = b""
        with suppress(BlockingIOError):
            beats = os.read(self._reading, READ_MAX)
        if beats:
            self._has_begun, self._looks = True, 0
            return "its writer thread makes no progress" if beats.endswith(STUCK) else None
        self._looks += self._has_begun
        if not self._looks or self._looks < self._looks_max:
            return None
        # Begin to count again, because a killed process may exist for some more checks.
        self._has_begun, self._looks = False, 0
        return "it sends no heartbeats"


def _state(pid: int) -> str:
    """Return the kernel's state of a process, such as running, sleeping or stopped."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("State:"):
                return line.removeprefix("State:").strip()
    return "unknown"


def stop_all(children: Sequence[Child]) -> None:
    """Stop several children at the same time."""
    for each in children:
        each.ask_to_stop()
    for each in children:
        each.stop()
