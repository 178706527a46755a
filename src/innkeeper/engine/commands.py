"""Commands to the writer thread, each typed by its answer.

Always true: commands are immutable. ``Boot`` and ``Explain`` are plain data, so another process
could execute them. The other three hold a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Refusal
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.dry_run import Explained, Question

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Work = Callable[[Tx], T]
"""Reads or writes in the given transaction. It may run more than once: a failed attempt is rolled
back."""
Together = Callable[[Tx, Sequence[T]], Sequence[Refusal | None]]
"""Writes many items in one transaction, and gives for each its refusal or ``None``. It writes
nothing of a refused item; if it raises, the transaction is rolled back."""
Deciding = Callable[[Tx, DecisionContext], T]
"""Work that chooses a host. It leaves the host table unchanged, and writes its own claims."""


class Command(Generic[T_co]):
    """Work for the next group commit; its answer is a ``T_co``, or it raises."""

    __slots__ = ()

    @property
    def lines(self) -> int:
        """About how many rows it writes: the more, the fewer commands share its commit."""
        return 1


@dataclass(frozen=True, slots=True)
class Write(Command[T_co]):
    """Run ``work``; a refusal rolls back this command alone."""

    work: Work[T_co]
    lines: int = 1


@dataclass(frozen=True, slots=True)
class WriteTogether(Command[None], Generic[T]):
    """Run ``work`` once for the items of all commands that name the same work."""

    work: Together[T]
    item: T
    lines: int = 1


@dataclass(frozen=True, slots=True)
class Boot(Command[Booted]):
    """Decide on a boot request and claim for it, together with the batch's other requests."""

    request: BootRequest

    @property
    def lines(self) -> int:
        """One line per server."""
        return self.request.count_max


@dataclass(frozen=True, slots=True)
class Decide(Command[T_co]):
    """As :class:`Write`, with the host table as the transaction sees it at ``now``."""

    work: Deciding[T_co]
    now: datetime


@dataclass(frozen=True, slots=True)
class Explain(Command[Explained]):
    """Decide as :class:`Boot` does, claim nothing, and explain the decision."""

    question: Question
