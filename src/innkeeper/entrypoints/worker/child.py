"""Keeps another program running beside this one."""

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
"""Whoever lived this long is begun again at once when it dies."""
LOOK_S = 0.2
STOP_S = 10.0
PULSE, INSTEAD_OF = "--pulse", "--instead-of"
"""Options of a program that is watched: where it gives its sign, and how the one before it
ended, if there was one."""
DEAD, HUNG = "dead", "hung"
READ_MAX = 65_536


class Child:
    """One program: started, started again when it dies, and stopped with this process.

    It has ``stop_s`` to stop by itself once it is asked to. ``died`` is told the number of
    each process that has ended. With ``silence_max_s`` it is a program that says all the time
    that it does its work, from when it begins to; if it says so no more for that long, or says
    that it gets nowhere, it is killed and started again.
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
        """Begin to keep it running."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ask it to stop, and wait for nothing."""
        self._stop.set()

    def stop(self) -> None:
        """Ask it to stop, and make it stop if it does not."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(self._stop_s + RESTART_FIRST_S)

    def _run(self) -> None:
        pause_s = RESTART_FIRST_S
        while not self._stop.is_set():
            lived_s = self._live()
            if self._stop.is_set():
                return
            pause_s = RESTART_FIRST_S if lived_s >= STEADY_S else min(2 * pause_s, RESTART_MAX_S)
            LOG.warning(
                "child_died", name=self._name, lived_s=round(lived_s, 1), again_in_s=pause_s
            )
            self._stop.wait(pause_s)

    def _live(self) -> float:
        """One life of the program; gives how long it was, to about a second."""
        try:
            sign = _Sign(self._silence_max_s)
        except OSError as error:
            return self._unbegun(error)
        with sign:
            try:
                child = self._begin(sign)
            except OSError as error:
                return self._unbegun(error)
            self._last_end = DEAD
            looks = 0
            while child.poll() is None and not self._stop.wait(LOOK_S):
                looks += 1
                why = sign.why_hung()
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

    def _unbegun(self, error: OSError) -> float:
        # Too many processes or files, or a program that is just being replaced: that passes.
        LOG.error("child_not_begun", name=self._name, error=str(error))
        return 0.0

    def _begin(self, sign: _Sign) -> subprocess.Popen[bytes]:
        command = list(self._command)
        if sign.telling is not None:
            command += [PULSE, str(sign.telling)]
            command += [] if self._last_end is None else [INSTEAD_OF, self._last_end]
        child = subprocess.Popen(  # noqa: S603 - our own
            command,
            env=self._environ,
            # In a group of its own: what a terminal tells us, we tell it.
            process_group=0,
            pass_fds=() if sign.telling is None else (sign.telling,),
        )
        sign.hand_over()
        return child

    def _kill(self, child: subprocess.Popen[bytes], why: str) -> None:
        LOG.error("worker_hung", name=self._name, pid=child.pid, why=why, state=_state(child.pid))
        # Not asked first: what hangs does not listen, and what is stopped cannot.
        child.send_signal(signal.SIGKILL)
        self._last_end = HUNG


class _Sign:
    """The pipe by which one life of a program says that it does its work.

    Silence is counted in looks. Whoever looks was awake; so neither a machine that slept nor a
    supervisor that was stopped makes anybody silent.
    """

    def __init__(self, silence_max_s: float | None) -> None:
        self.telling: int | None = None
        self._hearing: int | None = None
        self._has_begun = False
        self._looks = 0
        self._looks_max = 0.0
        if silence_max_s is not None:
            self._looks_max = silence_max_s / LOOK_S
            self._hearing, self.telling = os.pipe()
            os.set_blocking(self._hearing, False)

    def __enter__(self) -> _Sign:
        return self

    def __exit__(self, *_: object) -> None:
        self.hand_over()
        if self._hearing is not None:
            os.close(self._hearing)

    def hand_over(self) -> None:
        """Keep the writing end no longer: it is the program's."""
        if self.telling is not None:
            os.close(self.telling)
            self.telling = None

    def why_hung(self) -> str | None:
        """Look once; why the program has to go, if it has to."""
        if self._hearing is None:
            return None
        said = b""
        with suppress(BlockingIOError):
            said = os.read(self._hearing, READ_MAX)
        if said:
            self._has_begun, self._looks = True, 0
            return "its decisions do not come to an end" if said.endswith(STUCK) else None
        self._looks += self._has_begun
        if not self._looks or self._looks < self._looks_max:
            return None
        # Killed, it may still take some looks until it is gone.
        self._has_begun, self._looks = False, 0
        return "it says nothing any more"


def _state(pid: int) -> str:
    """What the kernel says of a process: running, sleeping, stopped, waiting for a disk."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("State:"):
                return line.removeprefix("State:").strip()
    return "unknown"


def stop_all(children: Sequence[Child]) -> None:
    """Stop several at the same time."""
    for each in children:
        each.ask_to_stop()
    for each in children:
        each.stop()
