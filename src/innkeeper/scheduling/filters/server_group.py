"""Only hosts where a server group's policy allows one more member; soft policies only weigh."""

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
    """Return True on the members' host for affinity, and below the maximum for anti-affinity.

    The first member of an affinity group may use any host. While a member migrates, its final
    host is not known, so an affinity group takes no new member.
    """
    group = spec.group
    if group is None:
        return None
    if group.policy == GroupPolicy.AFFINITY:
        if group.is_moving:
            return named(hosts, (), rows)
        occupied = _with_members(group, 1)
        return named(hosts, occupied, rows) if occupied else None
    if group.policy == GroupPolicy.ANTI_AFFINITY:
        full = _with_members(group, group.servers_per_host_max)
        return ~named(hosts, full, rows) if full else None
    return None


def _with_members(group: GroupRule, least: int) -> list[str]:
    return [name for name, count in group.members.items() if count >= least]


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Describe the policy, and the number of hosts with members."""
    group = spec.group
    if group is None:
        return "no server group requested"
    text = f"{group.policy} requested, with members on {len(_with_members(group, 1))} hosts"
    if group.policy == GroupPolicy.AFFINITY and group.is_moving:
        text += ", and one between two hosts"
    if group.policy == GroupPolicy.ANTI_AFFINITY:
        text += f" and at most {group.servers_per_host_max} on each"
    return text
