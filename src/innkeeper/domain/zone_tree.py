"""Types of trees of zones: child zones, zone parents, hops between zones, and servers below.

Source: the seed *Distributed Scheduler*; ADR 0037.
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
"""Ends the prefix of a parent's projects and users. No local id contains it."""
READER = "reader"
WRITING_ROLES = frozenset({"admin", "manager", "member", "service"})
"""A parent's users may write here only if the parent was granted one of these roles."""


def payer_of(project_id: str) -> str:
    """Return the key under which quotas count a project's servers.

    The projects of a zone parent count together, under the parent's prefix. Any other project
    counts by itself.
    """
    name, end, _ = project_id.partition(PREFIX_END)
    return name + end if end else project_id


@dataclass(frozen=True, slots=True)
class ChildState:
    """What the last polls found out about a child zone.

    ``zone_id`` is the random id of the child itself, which detects cycles. ``failures`` counts the
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
    the child sends counts as ``weight_offset + weight_scale x weight``. Zones send weights in a
    form in which the lower weight wins. A child that ``is_draining`` gets no new servers.
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
        """Whether lists and plans may ask the child: it is enabled, and answered its last polls."""
        return self.is_enabled and self.state.is_active

    @property
    def takes_servers(self) -> bool:
        """Whether plans ask the child."""
        return self.is_reachable and not self.is_draining

    @property
    def is_missed(self) -> bool:
        """Whether plans lack the child because it does not answer: otherwise, they would ask it."""
        return self.is_enabled and not self.is_draining and not self.state.is_active


@dataclass(frozen=True, slots=True)
class ZoneParent:
    """A zone above this one, as this zone knows it: what it may do here, and how much.

    ``roles`` are the roles that users of the parent may have here. The limits apply to all servers
    of the parent together; -1 is unlimited. ``ancestors`` are the random ids of the zones above,
    which the parent told at its last poll.
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
        """Whether users of the parent may create, change and delete servers here."""
        return not WRITING_ROLES.isdisjoint(self.roles)

    def admitted(self, roles: frozenset[str]) -> frozenset[str]:
        """Return the roles here of a user that has ``roles`` in the zone parent.

        The function returns granted roles only, with one exception: where ``reader`` must restrict
        the user, it is added, even if it was not granted or sent.
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
    """The facts about one request that all zones of the tree share, or that each hop changes.

    ``request_id`` is random, and the same in the whole tree. ``visited`` are the random ids of the
    zones on the way. ``hops_left`` is the number of hops, from a zone to a child zone, that the
    request may still make. ``time_left_ms`` is the time in milliseconds within which the parent
    needs the answer. ``link_host`` is the invented host name for links in the answer.
    """

    request_id: str
    visited: tuple[str, ...]
    hops_left: int
    time_left_ms: int
    link_host: str


@dataclass(frozen=True, slots=True)
class Hop:
    """The token of a request from a zone parent, after its signature was checked.

    ``id`` is accepted once for a request that writes. ``target`` is the path with its query, as
    tokens have it.
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

    ``BUILDING``: the boot batch is not decided yet. ``BUILT``: the child has the server.
    ``UNDOING``: the child must not have the server, and has not yet confirmed that. ``DELETING``:
    the child accepted to delete the server.
    """

    BUILDING = "building"
    BUILT = "built"
    UNDOING = "undoing"
    DELETING = "deleting"


class ZoneServer(msgspec.Struct, frozen=True):
    """A server in a child zone, or below it.

    A boot batch is all servers of one user request. If it has fewer than ``batch_min`` servers in
    all zones, this zone deletes them all. ``batch_min`` is 0 once this zone has decided about the
    batch, or if another zone decides. A request may need a thousand of these objects, so the type
    is a struct: a frozen dataclass takes ten times as long to make.
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
    """A server that a zone has in itself or below it, as it tells the zone parent.

    If the server ``is_undecided``, it may not exist yet, or may soon be gone.
    """

    uuid: str
    project_id: str
    user_id: str
    batch_id: str
    vcpus: int
    memory_mb: int
    is_undecided: bool = False
