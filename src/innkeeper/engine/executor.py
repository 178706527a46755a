"""Interfaces through which the writer thread boots, decides, and plans boots ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.engine.commands import Deciding
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.dry_run import Explained, Question

T = TypeVar("T")


class Executor(Protocol):
    """The functions of the compute system that the writer thread uses."""

    def begin(self, tx: Tx) -> None:
        """Prepare for a new transaction."""

    def boot(self, tx: Tx, requests: Sequence[BootRequest]) -> Sequence[Booted | Refusal]:
        """Choose and claim hosts for all requests. The outcome of a request may be a refusal."""

    def boot_entries(self, tx: Tx, request: BootRequest) -> Mapping[ServerId, Booted | Refusal]:
        """Boot the servers of a zone parent's request. Return an outcome for each server."""

    def already_booted(self, tx: Tx, request: BootRequest) -> Booted | None:
        """Return the outcome of a request if an earlier commit has booted it, or else ``None``."""

    def explain(self, tx: Tx, question: Question) -> Explained:
        """Decide without writing, and explain the decision."""

    def decide(self, tx: Tx, work: Deciding[T], now: datetime) -> T:
        """Run ``work`` with the transaction and a decision context."""

    @property
    def may_plan_ahead(self) -> bool:
        """Whether any boot may be planned ahead."""

    def plan_ahead(self, request: BootRequest) -> bool:
        """Plan the next boot before its transaction begins. Return whether that was possible."""

    def plans_ahead(self) -> tuple[int, int]:
        """Return how many of the plans made ahead were used, and how many were undone."""

    def follow(self, tx: Tx) -> None:
        """Bring the host table up to date with what ``tx`` sees."""

    def forget(self) -> None:
        """Undo the changes that a rolled-back transaction made to the host table."""


class Planner(Protocol):
    """Plans waiting boots while a batch is flushed; see :mod:`innkeeper.engine.planning_ahead`."""

    @property
    def is_needed(self) -> bool:
        """Whether :meth:`begin` would now take over the host table."""

    def begin(self, *, has_followed: bool) -> None:
        """Take over the host table, if plans are needed and ``has_followed`` is true.

        ``has_followed`` says that the table already shows the batch that is about to be committed.
        """

    def end(self) -> None:
        """Give the host table back to the writer thread, if it was taken over."""


class NoPlanner:
    """A :class:`Planner` that plans nothing."""

    is_needed = False

    def begin(self, *, has_followed: bool) -> None:
        """See :class:`Planner`."""

    def end(self) -> None:
        """See :class:`Planner`."""


NO_PLANNER = NoPlanner()
