"""Host aggregates and server groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.ids import ServerId
from innkeeper.domain.placing import GroupRule

ZONE_KEY = "availability_zone"
"""The metadata key that puts the hosts of an aggregate into an availability zone."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A named set of hosts with metadata. ``hosts`` are the names of the hosts, oldest first.

    ``kind`` is set if a room manages the aggregate, and ``None`` if operators manage it.
    """

    id: int
    uuid: str
    name: str
    metadata: Mapping[str, str]
    hosts: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    kind: str | None = None

    @property
    def availability_zone(self) -> str | None:
        """The availability zone that the aggregate sets for its hosts."""
        return self.metadata.get(ZONE_KEY)


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """Servers of one project under one policy (see :class:`placing.GroupPolicy`).

    ``servers_per_host_max`` applies to anti-affinity only, where ``None`` means one.
    """

    uuid: str
    name: str
    project_id: str
    user_id: str
    policy: str
    servers_per_host_max: int | None
    created_at: datetime
    id: int = 0


@dataclass(frozen=True, slots=True)
class GroupState:
    """A server group at the time of a boot.

    ``rule`` counts members by host. ``members`` counts all members that are not deleted, with or
    without a host.
    """

    group_id: int
    rule: GroupRule
    members: int


Members = Mapping[int, tuple[ServerId, ...]]
"""The servers of each group, by the group's row id. Deleted servers are omitted."""
