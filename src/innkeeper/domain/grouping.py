"""Host aggregates and server groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import NAMESPACE_URL, UUID, uuid5

from innkeeper.domain.ids import ServerId
from innkeeper.domain.placing import GroupRule

ZONE_KEY = "availability_zone"
"""The metadata key that puts the hosts of an aggregate into an availability zone."""
OF_RESERVATION = "reservation:"
"""The prefix of the name of a reservation's server group. The reservation's id comes after it."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A named set of hosts with metadata. ``hosts`` has the names of the hosts, oldest host first.

    ``kind`` is set if this service manages the aggregate, and ``None`` if operators manage it.
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

    ``servers_per_host_max`` applies only to anti-affinity policies, for which ``None`` means 1.
    """

    uuid: str
    name: str
    project_id: str
    user_id: str
    policy: str
    servers_per_host_max: int | None
    created_at: datetime
    id: int = 0

    @property
    def is_of_lease(self) -> bool:
        """Whether the group belongs to a reservation, judged by the group's id and name."""
        return (self.uuid, self.name) == group_of_reservation(
            self.name.removeprefix(OF_RESERVATION)
        )


def group_of_reservation(reservation: str) -> tuple[str, str]:
    """Return the id and the name of the server group of a reservation."""
    return str(uuid5(NAMESPACE_URL, f"group:{reservation}")), OF_RESERVATION + reservation


_OF_PARENTS = UUID("6b1a4f0e-52a5-4d0c-9f7e-0d3c8f0c2a51")


@dataclass(frozen=True, slots=True)
class GroupDefinition:
    """A server group, as a zone describes it to its child zones.

    ``key`` is the id of the group in the zone to which users send requests. ``has_members`` is true
    if the receiving zone or a zone below it has members of the group.
    """

    key: str
    policy: str
    servers_per_host_max: int | None = None
    has_members: bool = False

    @property
    def uuid(self) -> str:
        """The id of this group in child zones. No group that a child zone created has this id."""
        return str(uuid5(_OF_PARENTS, self.key))


@dataclass(frozen=True, slots=True)
class GroupState:
    """A server group at the time of a boot.

    ``rule`` has the number of members on each host. ``members`` is the number of members in this
    zone and the zones below. It includes members without a host, but no deleted members.
    ``group_id`` is 0 if a zone parent defined the group and this zone never had a member of it.
    """

    group_id: int
    rule: GroupRule
    members: int


Members = Mapping[int, tuple[ServerId, ...]]
"""The servers of each server group, by the row id of the group. Deleted servers are omitted."""
