"""What the handlers of one process share: the store, the decisions, the clock, the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

from innkeeper.domain.candidates import CandidateQuery, FoundCandidates
from innkeeper.domain.identity import RequestContext, Service
from innkeeper.domain.ids import Clock, IdSource
from innkeeper.domain.slices import Settings
from innkeeper.engine.commands import Together
from innkeeper.engine.transactions import Tx
from innkeeper.engine.wakeups import Bells
from innkeeper.entrypoints.api.load import Load
from innkeeper.entrypoints.api.passwords import PasswordThreads
from innkeeper.entrypoints.api.recordings import RecordingFiles
from innkeeper.systems.identity.tokens import Signer
from innkeeper.systems.zones.sealing import Sealer

T = TypeVar("T")


class Readers(Protocol):
    """Runs reading work off the event loop."""

    async def run(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in a transaction that sees every write acknowledged before."""


class Decisions(Protocol):
    """The one thread that writes and decides.

    ``lines`` is about how many things a step writes: what shares a commit with it is fewer,
    the more they are.
    """

    async def write(self, work: Callable[[Tx], T], lines: int = 1) -> T:
        """Run ``work`` in the next group commit; its refusal is raised here."""

    async def write_together(self, work: Together[T], item: T, lines: int = 1) -> None:
        """Run ``work`` in the next group commit, once for all items that wait for it."""

    async def boot(self, request: Any, lines: int = 1) -> Any:
        """Decide on and claim for a boot request, together with others that wait."""

    async def decide(self, work: Callable[[Tx, Any], T], now: datetime) -> T:
        """Carry ``work`` out as one step of its own commit's batch, with the means to decide.

        It finds the host table as its transaction sees it, leaves it so, and writes its claims.
        """

    async def explain(self, request: Any) -> Any:
        """Decide as :meth:`boot` would, claim nothing, and tell why."""


class Candidates(Protocol):
    """Searches the columns of all providers for allocation candidates."""

    async def find(
        self, query: CandidateQuery, told: Callable[[FoundCandidates], T]
    ) -> tuple[FoundCandidates, T]:
        """Search; gives what was found, and what ``told`` makes of it off the event loop.

        Sees every write that was acknowledged before. Raises :class:`Invalid` for a class or
        a trait that is not there.
        """


class Policy(Protocol):
    """Who may do what."""

    def allows(self, rule: str, context: RequestContext, target: Mapping[str, Any]) -> bool:
        """Whether ``rule`` lets the caller act on ``target``."""

    def demand(self, rule: str, context: RequestContext, target: Mapping[str, Any]) -> None:
        """Raise :class:`Forbidden` where :meth:`allows` says no."""


class Authenticator(Protocol):
    """Turns a request's headers into a context, by one of the three identity modes."""

    async def authenticate(self, headers: Mapping[str, str], request_id: str) -> RequestContext:
        """Raise :class:`Unauthenticated` where nobody vouches for the caller."""

    def forget(self) -> None:
        """Remember nothing of any token: somebody's rights were taken away."""


class Tracing(Protocol):
    """Sends spans somewhere."""

    def request(
        self, method: str, route: str, headers: Mapping[str, str]
    ) -> AbstractContextManager[Callable[[int, str], None]]:
        """A span around one request; tell it the answer's status and the request's id."""

    def stop(self) -> None:
        """Send what is left."""


@dataclass(slots=True)
class Site:
    """Handed to every call. Made by ``wiring`` once per process.

    ``services`` is what the service catalog holds. ``signer`` makes tokens in the ``builtin``
    mode of identity, and is ``None`` in the others. ``sealer`` seals the entries of build
    plans, and is ``None`` where the settings name no key.
    """

    settings: Settings
    readers: Readers
    decisions: Decisions
    candidates: Candidates
    recordings: RecordingFiles
    policy: Policy
    authenticator: Authenticator
    clock: Clock
    ids: IdSource
    services: tuple[Service, ...] = ()
    signer: Signer | None = None
    sealer: Sealer | None = None
    passwords: PasswordThreads = field(default_factory=PasswordThreads)
    bells: Bells = field(default_factory=Bells)
    load: Load = field(default_factory=Load)
    tracing: Tracing | None = None
