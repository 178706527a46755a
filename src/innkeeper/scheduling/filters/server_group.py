"""Only hosts on which a server group's policy allows one more member.

The soft policies only wish; weighers follow them.
"""

from __future__ import annotations

from innkeeper.domain.placing import GroupPolicy, GroupRule, RequestSpec
from innkeeper.scheduling.facts.masks import named
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "ServerGroupFilter"
REASON = "the server group's policy allows no member there"
READS: Reads = ("group",)
HINTS = ("group",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where members may be: together, or at most so many on one host.

    The first member of an affinity group may be anywhere. While a member is between two hosts,
    nobody can be where it will be for sure, so no other comes.
    """
    group = spec.group
    if group is None:
        return None
    if group.policy == GroupPolicy.AFFINITY:
        homes = _homes(group)
        if group.is_moving:
            return named(hosts, (), rows)
        return named(hosts, homes, rows) if homes else None
    if group.policy == GroupPolicy.ANTI_AFFINITY:
        full = _full(group)
        return ~named(hosts, full, rows) if full else None
    return None


def _homes(group: GroupRule) -> list[str]:
    return [name for name, count in group.members.items() if count > 0]


def _full(group: GroupRule) -> list[str]:
    most = group.servers_per_host_max
    return [name for name, count in group.members.items() if count >= most]


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """The policy, and on how many hosts members are."""
    group = spec.group
    if group is None:
        return "no server group asked for"
    told = f"{group.policy} asked for, with members on {len(_homes(group))} hosts"
    if group.policy == GroupPolicy.AFFINITY and group.is_moving:
        told += ", and one between two hosts"
    if group.policy == GroupPolicy.ANTI_AFFINITY:
        told += f" and at most {group.servers_per_host_max} on each"
    return told
