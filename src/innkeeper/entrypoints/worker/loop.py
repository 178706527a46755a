"""Runs the rooms' periodic tasks, each on its period.

A task takes no input and does whatever is due; running it twice, or a minute late, does no
harm. A task that fails is logged and comes again at its next turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import structlog

from innkeeper.engine.periodic import PeriodicTask

LOG = structlog.get_logger("innkeeper.worker")


class WorkerThread:
    """One thread for all tasks: they are short, and write through the writer thread."""

    def __init__(self, tasks: Sequence[PeriodicTask], clock_s: Callable[[], float]) -> None:
        self._tasks = tasks
        self._clock_s = clock_s
        self._due_s = {task.name: clock_s() + task.period_s for task in tasks}
        self._wake = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)

    def start(self) -> None:
        """Begin to keep the periods."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Finish the task that runs, then end."""
        self._is_stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._is_stopping:
            self.run_due()
            wait_s = min(self._due_s.values(), default=60.0) - self._clock_s()
            self._wake.wait(max(0.0, wait_s))
            self._wake.clear()

    def run_due(self) -> None:
        """Run all tasks whose time has come."""
        for task in self._tasks:
            if self._is_stopping or self._clock_s() < self._due_s[task.name]:
                continue
            self._due_s[task.name] = self._clock_s() + task.period_s
            try:
                count = task.work()
            except Exception as error:
                # Whatever it was, the other tasks go on, and this one has its next turn.
                LOG.error("task_failed", task=task.name, exc_info=error)
                continue
            if count:
                LOG.info("task_done", task=task.name, count=count)
