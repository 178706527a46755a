"""Keeps another program running beside this one."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence

import structlog

LOG = structlog.get_logger("innkeeper.worker")
RESTART_FIRST_S = 0.5
RESTART_MAX_S = 30.0
STEADY_S = 60.0
"""Whoever lived this long is begun again at once when it dies."""
LOOK_S = 0.2
STOP_S = 10.0


class Child:
    """One program: started, started again when it dies, and stopped with this process.

    It has ``stop_s`` to stop by itself once it is asked to. ``died`` is told the number of
    each process that has ended.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        name: str = "child",
        stop_s: float = STOP_S,
        died: Callable[[int], object] | None = None,
    ) -> None:
        self._name = name
        self._command = list(command)
        self._environ = dict(environ)
        self._stop_s = stop_s
        self._died = died
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
        self._thread.join(self._stop_s + RESTART_FIRST_S)

    def _run(self) -> None:
        pause_s = RESTART_FIRST_S
        while not self._stop.is_set():
            lived_s = self._live()
            if self._stop.is_set():
                return
            pause_s = (
                RESTART_FIRST_S if lived_s >= STEADY_S else min(2 * pause_s, RESTART_MAX_S)
            )
            LOG.warning(
                "child_died", name=self._name, lived_s=round(lived_s, 1), again_in_s=pause_s
            )
            self._stop.wait(pause_s)

    def _live(self) -> float:
        """One life of the program; gives how long it was, to about a second."""
        child = subprocess.Popen(  # noqa: S603 - our own
            self._command,
            env=self._environ,
            # In a group of its own: what a terminal tells us, we tell it.
            process_group=0,
        )
        looks = 0
        while child.poll() is None and not self._stop.wait(LOOK_S):
            looks += 1
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


def stop_all(children: Sequence[Child]) -> None:
    """Stop several at the same time."""
    for each in children:
        each.ask_to_stop()
    for each in children:
        each.stop()
