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
from innkeeper.engine.leader.leadership import Leadership
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.doors import Door
from innkeeper.engine.zones.neighbours import Neighbours
from innkeeper.entrypoints.api.load import Load
from innkeeper.entrypoints.api.passwords import PasswordThreads
from innkeeper.entrypoints.api.recordings import RecordingFiles
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.identity.tokens import Signer
from innkeeper.systems.leases.resource_types.catalogue import BUILT_IN, ResourceTypes
from innkeeper.systems.zones.sealing import Sealer


class Policy(Protocol):
    """Decides whether policy rules allow a call."""

    def allows(self, rule: str, context: RequestContext, target: Mapping[str, Any]) -> bool:
        """Return whether ``rule`` allows the call on ``target``."""

    def demand(self, rule: str, context: RequestContext, target: Mapping[str, Any]) -> None:
        """Raise :class:`Forbidden` if ``rule`` does not allow the call on ``target``."""


class Authenticator(Protocol):
    """Authenticates requests, in one of the modes of identity."""

    async def authenticate(self, headers: Mapping[str, str], request_id: str) -> RequestContext:
        """Return the request's context.

        Raises :class:`Unauthenticated` if the headers contain no valid token.
        """

    def forget(self) -> None:
        """Invalidate all cached tokens, because roles or users have changed."""


class LeaseCheck(Protocol):
    """The external check of leases."""

    async def demand(self, path: str, body: Mapping[str, Any]) -> None:
        """Raise :class:`Invalid` if the check denies the lease in the body."""


class Tracer(Protocol):
    """Sends trace spans to a collector."""

    def request(
        self, method: str, route: str, headers: Mapping[str, str]
    ) -> AbstractContextManager[Callable[[int, str], None]]:
        """A context manager that traces a request until the block ends.

        The block must call the yielded function with the answer's status and the request id.
        """

    def stop(self) -> None:
        """Send the remaining spans."""


@dataclass(slots=True)
class Site:
    """The shared objects of a process, to which every call refers. ``wiring`` creates the site.

    ``services`` is the content of the service catalog. ``signer`` signs tokens in the ``builtin``
    mode of identity, and is ``None`` in the other modes. ``sealer`` seals the entries of build
    plans, and is ``None`` if the settings have no key for them. ``lease_check`` is ``None`` if the
    settings have no address of an external check of leases. ``secret_box`` seals the secrets that
    zones share, and ``neighbours`` reaches the zones around this zone. Both fields are ``None`` in
    a zone that can have no neighbours. ``pods`` reaches the pods (clouds behind this service), and
    is ``None`` if the service does not administer pods. If this service is a gateway, ``door``
    forwards requests for servers and volumes to pods. ``leadership`` forwards writes to the leader,
    and is ``None`` if this process is alone.
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
    lease_check: LeaseCheck | None = None
    secret_box: SecretBox | None = None
    neighbours: Neighbours | None = None
    pods: PodClouds | None = None
    door: Door | None = None
    leadership: Leadership | None = None
    resource_types: ResourceTypes = BUILT_IN
    passwords: PasswordThreads = field(default_factory=PasswordThreads)
    load: Load = field(default_factory=Load)
    tracing: Tracer | None = None
