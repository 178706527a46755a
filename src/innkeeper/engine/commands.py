"""Commands for the writer thread, each with the type of its answer.

Always true: commands are immutable. ``Boot`` and ``Explain`` are plain data, so another process
could execute them. The other commands contain a function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from msgspec.structs import replace

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.dry_run import Explained, Question

T = TypeVar("T")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)

BOOT = "boot"
"""The kind of a :class:`Boot`."""
ALLOCATIONS = "allocations"
HEARTBEATS, RESULTS, REPORTS = "heartbeats", "results", "reports"
"""Kinds of :class:`WriteTogether` commands, in metrics."""

Work = Callable[[Tx], T]
"""A function that reads or writes in the given transaction. It may run more than once, because a
failed attempt is rolled back and retried."""
Together = Callable[[Tx, Sequence[T]], Sequence[R | Refusal]]
"""A function that writes many items in one transaction. It returns an answer or a refusal for each
item, and must write nothing for a refused item. If it raises an error, the transaction is rolled
back."""
ReadTogether = Callable[[Tx, Sequence[T]], Sequence[R | Refusal]]
"""A function that reads for many items in one transaction. It returns an answer or a refusal for
each item."""
Admit = Callable[[Tx, bool], Collection[str]]
"""A function to run before the boots of build plan entries; see :class:`BootEntries`."""
Deciding = Callable[[Tx, DecisionContext], T]
"""A function that chooses a host. It must leave the host table unchanged, and must itself write its
claims to the store."""
DecidingTogether = Callable[[Tx, DecisionContext, Sequence[T]], Sequence[T_co | Refusal]]
"""Like :data:`Deciding`, for many items in one transaction. The function returns an answer or a
refusal for each item, and must write nothing for a refused item. If it raises an error, the
transaction is rolled back."""


class Command(Generic[T_co]):
    """Work for the next group commit, with an answer of the type ``T_co``."""

    __slots__ = ()

    @property
    def lines(self) -> int:
        """The approximate number of rows that the command writes.

        It counts towards the batch's limit.
        """
        return 1

    @property
    def kind(self) -> str:
        """The kind of the command in metrics."""
        return "write"

    @property
    def is_writing(self) -> bool:
        """Whether the command may write. A commit of commands that do not write costs little."""
        return True


@dataclass(frozen=True, slots=True)
class Write(Command[T_co]):
    """Run ``work``; a refusal rolls back only this command."""

    work: Work[T_co]
    lines: int = 1


@dataclass(frozen=True, slots=True)
class WriteTogether(Command[T_co], Generic[T, T_co]):
    """Run ``work`` once for all commands of the batch that have the same ``work``.

    It gets the items of all these commands.
    """

    work: Together[T, T_co]
    item: T
    lines: int = 1
    kind: str = ALLOCATIONS


@dataclass(frozen=True, slots=True)
class Boot(Command[Booted]):
    """Choose hosts for a boot request and claim them, along with the other boots of the batch."""

    request: BootRequest

    @property
    def lines(self) -> int:
        """The maximum number of servers, because a boot writes about one row for each server."""
        return self.request.count_max

    @property
    def kind(self) -> str:
        """See :class:`Command`."""
        return BOOT


@dataclass(frozen=True, slots=True)
class BootEntries(Command[Mapping[ServerId, Booted | Refusal]]):
    """Boot the servers of a zone parent's build plan entries.

    The answer maps the id of each server to its outcome.

    ``admit`` is run before the boots, in the same transaction. It returns the ids of servers that
    must not be built. These servers get no outcome. If ``admit`` raises a refusal, nothing is
    written. The second argument of ``admit`` says whether the command may have been committed
    before. If so, the request may already be recorded as accepted.

    If the request has no entries, this zone chooses the hosts. Then the servers are booted
    together, and none is booted if ``admit`` returns any id.
    """

    request: BootRequest
    admit: Admit

    @property
    def lines(self) -> int:
        """The number of servers to boot."""
        return len(self.request.entries) or self.request.count_max

    def open_but(self, closed: Collection[str]) -> BootRequest | None:
        """Return the request without the ``closed`` servers, or ``None`` if no server is left."""
        request = self.request
        if not request.entries:
            return None if closed else request
        left = tuple(each for each in request.entries if each.server_id not in closed)
        return replace(request, entries=left) if left else None

    @property
    def kind(self) -> str:
        """See :class:`Command`."""
        return "entries"


@dataclass(frozen=True, slots=True)
class Decide(Command[T_co]):
    """Run ``work`` like :class:`Write`, and pass it a decision context as of ``now``.

    With ``is_plan``, ``work`` must not write.
    """

    work: Deciding[T_co]
    now: datetime
    is_plan: bool = False
    lines: int = 1

    @property
    def is_writing(self) -> bool:
        """See :class:`Command`."""
        return not self.is_plan

    @property
    def kind(self) -> str:
        """See :class:`Command`."""
        return "decide"


@dataclass(frozen=True, slots=True)
class DecideTogether(Command[T_co], Generic[T, T_co]):
    """Run ``work`` once for all commands of the batch that have the same ``work``.

    It gets the items of all these commands. The time of the decision context is the latest ``now``
    of these commands.
    """

    work: DecidingTogether[T, T_co]
    item: T
    now: datetime

    @property
    def kind(self) -> str:
        """See :class:`Command`."""
        return "decide"


@dataclass(frozen=True, slots=True)
class Explain(Command[Explained]):
    """Choose hosts like :class:`Boot`, but claim nothing, and return an explanation."""

    question: Question

    @property
    def kind(self) -> str:
        """See :class:`Command`."""
        return "explain"

    @property
    def is_writing(self) -> bool:
        """See :class:`Command`."""
        return False
