"""Words for sets of hosts, which are aggregates, and for sets of servers, which are groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.ids import ServerId
from innkeeper.domain.placing import GroupRule

ZONE_KEY = "availability_zone"
"""The key of an aggregate's metadata that puts its hosts into an availability zone."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A named set of hosts with metadata. ``hosts`` are their names, the oldest host first.

    ``kind`` says who keeps it; ``None`` stands for whoever edits it.
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
        """The zone that its hosts are in because of it."""
        return self.metadata.get(ZONE_KEY)


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """Servers of one project under one policy, see :class:`placing.GroupPolicy`.

    ``servers_per_host_max`` is for anti-affinity alone, where ``None`` means one.
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
    """A server group at one moment, as booting into it needs it.

    ``rule`` counts its members by host; ``members`` counts all that are not deleted, those
    included that have no host.
    """

    group_id: int
    rule: GroupRule
    members: int


Members = Mapping[int, tuple[ServerId, ...]]
"""Servers that are not deleted, by the row of their group."""
