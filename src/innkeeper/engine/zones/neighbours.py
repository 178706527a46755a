"""The objects with which entrypoints reach the zones around this zone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from innkeeper.clients.zone_wire import HttpWire, ZoneWire
from innkeeper.clients.zones import ZoneClient
from innkeeper.domain.ids import Clock, IdSource
from innkeeper.domain.limits import Limits
from innkeeper.domain.slices import Settings
from innkeeper.engine import callers, metrics
from innkeeper.engine.engine import Engine
from innkeeper.engine.zones.booting import TreeBooter
from innkeeper.engine.zones.forwarding import ServerRequests
from innkeeper.engine.zones.known_children import KnownChildren
from innkeeper.engine.zones.listing import ServerLists
from innkeeper.engine.zones.placing import ServerPlacer
from innkeeper.engine.zones.serving import ParentRequests
from innkeeper.engine.zones.tree import ZoneParts, ZoneTree
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.zones.sealing import Sealer

WireOf = Callable[[], ZoneWire]
"""A function that makes the transport for requests to child zones."""


@dataclass(frozen=True, slots=True)
class ZoneSources:
    """The sources of time and ids, and the transport. ``timer_s`` returns monotonic seconds."""

    clock: Clock
    ids: IdSource
    timer_s: Callable[[], float] = time.monotonic
    wire_of: WireOf = HttpWire


class Neighbours:
    """The zones below and above this one.

    Four objects act on the zones below: ``tree`` plans, ``booter`` boots servers, ``servers``
    forwards requests for servers, and ``lists`` lists servers. Two objects serve the zones above:
    ``placer`` places servers for them, and ``parents`` serves all their other requests.
    """

    def __init__(
        self,
        parts: ZoneParts,
        limits: Limits,
        service_down_time_s: float,
        wire_of: WireOf = HttpWire,
    ) -> None:
        self._limits = limits
        self._service_down_time_s = service_down_time_s
        self._wire_of = wire_of
        self.tree = ZoneTree(parts)
        self.booter = TreeBooter(self.tree, limits, service_down_time_s)
        self.servers = ServerRequests(self.tree, limits)
        self.lists = ServerLists(self.tree)
        self.parents = ParentRequests(self.tree, self.booter)
        self.placer = ServerPlacer(self.tree, self.parents)

    def beside(self) -> Neighbours:
        """Return a copy for another event loop, with its own connections."""
        parts = self.tree.parts
        client = client_of(parts.clock, parts.ids, parts.zoning.zone_requests_max, self._wire_of)
        parts = replace(parts, client=client, children=parts.children.beside())
        return Neighbours(parts, self._limits, self._service_down_time_s, self._wire_of)


def neighbours_of(
    settings: Settings,
    engine: Engine,
    box: SecretBox | None,
    sealer: Sealer | None,
    zone_id: str,
    sources: ZoneSources,
) -> Neighbours | None:
    """Return the zones around this zone. Return ``None`` without keys for secrets and plans."""
    if box is None or sealer is None:
        return None
    zoning, ids, clock = settings.zoning, sources.ids, sources.clock
    client = client_of(clock, ids, zoning.zone_requests_max, sources.wire_of)
    children = KnownChildren(engine, box, zoning.zone_poll_interval_s, sources.timer_s)
    return Neighbours(
        ZoneParts(engine, client, children, sealer, zoning, zone_id, ids, clock),
        quotas.defaults(settings.computing),
        settings.computing.service_down_time_s,
        sources.wire_of,
    )


def client_of(
    clock: Clock, ids: IdSource, requests_max: int, wire_of: WireOf = HttpWire
) -> ZoneClient:
    """Return a client for child zones. Metrics count its requests."""
    return ZoneClient(clock, ids, requests_max, metrics.asked_zone, wire_of(), callers.must_finish)
