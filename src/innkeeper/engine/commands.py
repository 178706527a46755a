"""What the writer thread can be asked to do: a command each, typed by its answer.

Always true: a command is not changed once it is made. A ``Boot`` and an ``Explain`` are plain
data, so another process could carry them out as they are. The other three hold a function.
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
"""Reads or writes in a transaction that it is given. It may be done more than once: what an
attempt that failed has written is undone."""
Together = Callable[[Tx, Sequence[T]], Sequence[Refusal | None]]
"""Writes many items in one transaction, and gives for each why it was refused, if it was. Of
what it refuses it has written nothing; if it raises, the transaction ends."""
Deciding = Callable[[Tx, DecisionContext], T]
"""Work that chooses a host. It leaves the host table as it is, and writes its own claims."""


class Command(Generic[T_co]):
    """Something to do in the next group commit; its answer is a ``T_co``, or it raises."""

    __slots__ = ()

    @property
    def lines(self) -> int:
        """About how many things it writes: the more, the fewer commands share its commit."""
        return 1


@dataclass(frozen=True, slots=True)
class Write(Command[T_co]):
    """Do ``work``, and undo it alone if it is refused."""

    work: Work[T_co]
    lines: int = 1


@dataclass(frozen=True, slots=True)
class WriteTogether(Command[None], Generic[T]):
    """Do ``work`` once for the items of all commands that name the same work."""

    work: Together[T]
    item: T
    lines: int = 1


@dataclass(frozen=True, slots=True)
class Boot(Command[Booted]):
    """Decide on a boot request and claim for it, together with the others of its batch."""

    request: BootRequest

    @property
    def lines(self) -> int:
        """A line for each server."""
        return self.request.count_max


@dataclass(frozen=True, slots=True)
class Decide(Command[T_co]):
    """As :class:`Write`, with the host table as the transaction sees it at ``now``."""

    work: Deciding[T_co]
    now: datetime


@dataclass(frozen=True, slots=True)
class Explain(Command[Explained]):
    """Decide as :class:`Boot` does, claim nothing, and tell why."""

    question: Question
