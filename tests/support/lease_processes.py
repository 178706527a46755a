"""Processes that carry out the events of leases; a test runs them and lets them die."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from innkeeper.domain.slices import Settings
from innkeeper.engine.commands import Command
from innkeeper.engine.periodic import PeriodicTask, PeriodicTasks
from innkeeper.engine.writer import Writer
from tests.support.clouds import Cloud
from tests.support.lease_operator import LeaseOperator

T = TypeVar("T")
STOP_S = 10.0


class Died(Exception):
    """The process died right after a commit."""


class MortalWriter(Writer):
    """Carries out writes, and counts them; after ``commits_left`` writes the process dies.

    ``before`` is called before each write: there, other processes act.
    """

    commits_left: int | None = None

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.commits = 0
        self.before: Callable[[], object] | None = None
        self.answers: list[Any] = []

    def submit_all_and_wait(
        self, commands: Sequence[Command[T]], timeout_s: float
    ) -> list[T | BaseException]:
        """Carry out writes."""
        if self.before is not None:
            self.before()
        answers = super().submit_all_and_wait(commands, timeout_s)
        self.commits += 1
        self.answers.append(answers[1:])
        if self.commits_left == self.commits:
            raise Died
        return answers


class LeaseProcess:
    """A process on an operator's cloud, with connections of its own."""

    def __init__(self, operator: LeaseOperator, commits_left: int | None = None) -> None:
        self.operator = operator
        self.cloud: Cloud = operator.cloud.beside()
        self.writer = MortalWriter(self.cloud.store, self.cloud.executor)
        self.writer.commits_left = commits_left
        self.writer.start()
        periodic = PeriodicTasks(
            Settings(leasing=operator.leasing),
            self.cloud.store,
            self.writer,
            lambda: operator.now,
            self.cloud.ids,
        )
        self.tasks: dict[str, PeriodicTask] = {each.name: each for each in periodic.tasks()}

    def run(self, after_s: float = 0.0) -> int:
        """Let some time pass, and run the task for events."""
        if after_s:
            self.operator.movers.wait(after_s)
        return self.tasks["lease_events"].work()

    def stop(self) -> None:
        """End the process."""
        self.writer.stop(STOP_S)
        self.cloud.close()
