"""What the handlers of one process share: the engine, the clock, the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from innkeeper.domain.identity import CatalogService, RequestContext
from innkeeper.domain.ids import Clock, IdSource
from innkeeper.domain.slices import Settings
from innkeeper.engine.engine import Engine
from innkeeper.entrypoints.api.load import Load
from innkeeper.entrypoints.api.passwords import PasswordThreads
from innkeeper.entrypoints.api.recordings import RecordingFiles
from innkeeper.systems.identity.tokens import Signer
from innkeeper.systems.zones.sealing import Sealer


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


class Tracer(Protocol):
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
    engine: Engine
    recordings: RecordingFiles
    policy: Policy
    authenticator: Authenticator
    clock: Clock
    ids: IdSource
    services: tuple[CatalogService, ...] = ()
    signer: Signer | None = None
    sealer: Sealer | None = None
    passwords: PasswordThreads = field(default_factory=PasswordThreads)
    load: Load = field(default_factory=Load)
    tracing: Tracer | None = None
