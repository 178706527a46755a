"""Types for trees of zones: child zones, zone parents, hops, and servers in child zones.

Source: the design *Distributed Scheduler*; ADR 0037.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.ids import ServerId

PREFIX_END = ":"
"""Ends the prefix of the ids of a zone parent's projects and users. No local id contains it."""
READER = "reader"
WRITING_ROLES = frozenset({"admin", "manager", "member", "service"})
"""A zone parent's users may write in this zone only if the parent was granted one of these roles.
"""


def payer_of(project_id: str) -> str:
    """Return the key under which quotas count a project's servers.

    All projects of a zone parent share one key, the parent's prefix. Any other project has its own
    id as its key.
    """
    name, end, _ = project_id.partition(PREFIX_END)
    return name + end if end else project_id


@dataclass(frozen=True, slots=True)
class ChildState:
    """The state of a child zone, according to the last polls.

    ``zone_id`` is the child's own random id, which serves to detect cycles. ``failures`` counts the
    failed polls in a row. ``capabilities`` are those of the whole tree below the child.
    """

    zone_id: str | None = None
    is_active: bool = False
    last_seen_at: datetime | None = None
    last_error: str | None = None
    failed_at: datetime | None = None
    latency_ms: float | None = None
    failures: int = 0
    capabilities: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChildZone:
    """A child zone of this zone.

    ``username`` is the name under which the child knows this zone as a zone parent. A weight that
    the child sends counts as ``weight_offset + weight_scale x weight``. Between zones, the lowest
    weight wins. A child that ``is_draining`` gets no new servers.
    """

    id: int
    uuid: str
    name: str
    api_url: str
    username: str
    weight_offset: float
    weight_scale: float
    is_enabled: bool
    is_draining: bool
    created_at: datetime
    updated_at: datetime
    state: ChildState = ChildState()

    @property
    def is_reachable(self) -> bool:
        """Whether the child is enabled and answered its last polls."""
        return self.is_enabled and self.state.is_active

    @property
    def takes_servers(self) -> bool:
        """Whether plans ask the child for offers."""
        return self.is_reachable and not self.is_draining

    @property
    def is_missed(self) -> bool:
        """Whether plans leave the child out only because it does not answer."""
        return self.is_enabled and not self.is_draining and not self.state.is_active


@dataclass(frozen=True, slots=True)
class ZoneParent:
    """A zone above this zone, with its rights and limits in this zone.

    ``roles`` are the roles that users of the parent may have in this zone. The limits apply to all
    servers of the parent together; -1 is unlimited. ``ancestors`` are the random ids of the zones
    above this zone, as the parent sent them with its last poll.
    """

    id: int
    uuid: str
    name: str
    roles: tuple[str, ...]
    servers_max: int
    vcpus_max: int
    memory_mb_max: int
    is_enabled: bool
    created_at: datetime
    updated_at: datetime
    ancestors: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """The prefix of the ids of this parent's projects and users in this zone."""
        return self.name + PREFIX_END

    def owns(self, project_id: str) -> bool:
        """Return whether a project id of this zone belongs to a project of the parent."""
        return project_id.startswith(self.prefix)

    @property
    def may_write(self) -> bool:
        """Whether users of the parent may create, change and delete servers in this zone."""
        return not WRITING_ROLES.isdisjoint(self.roles)

    def admitted(self, roles: frozenset[str]) -> frozenset[str]:
        """Return the roles in this zone of a user who has ``roles`` in the zone parent.

        Only roles that this zone granted to the parent are returned. If the user may not write in
        this zone, the result also has ``reader``, even if it was not granted.
        """
        kept = roles & frozenset(self.roles)
        is_restricted = READER in roles and WRITING_ROLES.isdisjoint(roles)
        if is_restricted or not self.may_write:
            return (kept - WRITING_ROLES) | {READER}
        return kept if kept & WRITING_ROLES else kept - {READER}

    @property
    def is_limited(self) -> bool:
        """Whether this zone limits the servers of the parent in any way."""
        return (self.servers_max, self.vcpus_max, self.memory_mb_max) != (UNLIMITED,) * 3


@dataclass(frozen=True, slots=True)
class TreeRequest:
    """The facts about a request that travel with it through the tree of zones.

    ``request_id`` is random, and the same in the whole tree. ``visited`` are the random ids of the
    zones that the request has passed. The request may still make ``hops_left`` hops from a zone to
    a child zone. ``time_left_ms`` is the time in milliseconds within which the parent needs the
    answer. ``link_host`` is a placeholder for the host name in links of the answer.
    """

    request_id: str
    visited: tuple[str, ...]
    hops_left: int
    time_left_ms: int
    link_host: str


@dataclass(frozen=True, slots=True)
class Hop:
    """The token of a request from a zone parent, after its signature was checked.

    For a request that writes, ``id`` is accepted only once. ``target`` is the path with the query,
    or a digest of both.
    """

    id: str
    parent: ZoneParent
    method: str
    target: str
    body_digest: str
    expires_at: datetime
    tree: TreeRequest


class ZoneServerState:
    """The state of a server in a child zone, as this zone knows it.

    ``BUILDING``: the outcome of the boot batch is not known yet. ``BUILT``: the child has the
    server. ``UNDOING``: the child must remove the server, and has not yet confirmed the removal.
    ``DELETING``: the child accepted to delete the server.
    """

    BUILDING = "building"
    BUILT = "built"
    UNDOING = "undoing"
    DELETING = "deleting"


class ZoneServer(msgspec.Struct, frozen=True):
    """A server in a child zone, or below it.

    The servers of one user request are a boot batch. If all zones together have fewer than
    ``batch_min`` servers of the batch, this zone deletes the batch. ``batch_min`` is 0 once this
    zone has decided about the batch, or if another zone decides. The type is a msgspec struct,
    because a request may need a thousand of these objects. A frozen dataclass takes ten times as
    long to create.
    """

    uuid: ServerId
    child_id: int
    batch_id: str
    project_id: str
    user_id: str
    vcpus: int
    memory_mb: int
    state: str
    batch_min: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class HeldServer:
    """A server in a zone or below it, as the zone reports the server to its zone parent.

    If the server ``is_undecided``, it may not exist yet, or may soon be gone.
    """

    uuid: str
    project_id: str
    user_id: str
    batch_id: str
    vcpus: int
    memory_mb: int
    is_undecided: bool = False
