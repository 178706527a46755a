"""Runs the periodic tasks of all systems.

A task does the work that is due. A task may run twice or late without harm. A task that fails is
logged, and runs again in its next period.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import structlog

from innkeeper.engine.periodic import PeriodicTask

LOG = structlog.get_logger("innkeeper.worker")


class WorkerThread:
    """Runs tasks one after another in one thread.

    Tasks are short, and their writes go through the writer thread.
    """

    def __init__(
        self, tasks: Sequence[PeriodicTask], clock_s: Callable[[], float], name: str
    ) -> None:
        self._tasks = tasks
        self._clock_s = clock_s
        self._due_s = {task.name: clock_s() + task.period_s for task in tasks}
        self._wake = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Finish the running task, and end the thread."""
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
        """Run all tasks that are due."""
        for task in self._tasks:
            if self._is_stopping or self._clock_s() < self._due_s[task.name]:
                continue
            self._due_s[task.name] = self._clock_s() + task.period_s
            try:
                count = task.work()
            except Exception as error:
                # The other tasks still run, and this task runs again in its next period.
                LOG.error("task_failed", task=task.name, exc_info=error)
                continue
            if count:
                LOG.info("task_done", task=task.name, count=count)
