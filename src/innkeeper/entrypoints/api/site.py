"""Objects that all handlers of a process share, such as the engine, the clock and the policy."""

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
    """Authorization of calls."""

    def allows(self, rule: str, context: RequestContext, target: Mapping[str, Any]) -> bool:
        """Return whether ``rule`` allows the call on ``target``."""

    def demand(self, rule: str, context: RequestContext, target: Mapping[str, Any]) -> None:
        """Raise :class:`Forbidden` unless :meth:`allows` is true."""


class Authenticator(Protocol):
    """Authenticates requests, in one of the modes of identity."""

    async def authenticate(self, headers: Mapping[str, str], request_id: str) -> RequestContext:
        """Return the request's context; raises :class:`Unauthenticated` without a valid token."""

    def forget(self) -> None:
        """Invalidate all cached tokens, because roles or users have changed."""


class Tracer(Protocol):
    """Sends spans to a collector."""

    def request(
        self, method: str, route: str, headers: Mapping[str, str]
    ) -> AbstractContextManager[Callable[[int, str], None]]:
        """Trace a request; yield a function that takes the answer's status and the request id."""

    def stop(self) -> None:
        """Send the remaining spans."""


@dataclass(slots=True)
class Site:
    """The shared objects of a process, which every call refers to; ``wiring`` creates one.

    ``services`` is the content of the service catalog. ``signer`` signs tokens in the ``builtin``
    mode of identity, and is ``None`` in the other modes. ``sealer`` seals the entries of build
    plans, and is ``None`` if the settings have no key for them.
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
