"""Keep only hosts where the server group's policy allows one more member.

Soft policies remove no hosts. They only affect weights.
"""

from __future__ import annotations

from innkeeper.domain.placing import GroupPolicy, GroupRule, RequestSpec
from innkeeper.scheduling.facts.masks import named
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "ServerGroupFilter"
REASON = "the server group's policy does not allow another member on the host"
READS: Reads = ("group",)
HINTS = ("group",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True on hosts where the group's policy allows one more member.

    With affinity, only the hosts of the other members pass. For the first member, all hosts pass.
    While a member migrates, no host passes, because the member's final host is unknown. If all
    members are in other zones, no host passes. With anti-affinity, hosts with fewer members than
    the maximum pass.
    """
    group = spec.group
    if group is None:
        return None
    if group.policy == GroupPolicy.AFFINITY:
        if group.is_moving or group.is_elsewhere:
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
    """State the policy, and the number of hosts with members."""
    group = spec.group
    if group is None:
        return "no server group requested"
    text = f"{group.policy} requested, with members on {len(_with_members(group, 1))} hosts"
    if group.policy == GroupPolicy.AFFINITY and group.is_moving:
        text += "; a member is migrating"
    if group.policy == GroupPolicy.AFFINITY and group.is_elsewhere:
        text += "; the members are in other zones"
    if group.policy == GroupPolicy.ANTI_AFFINITY:
        text += f"; at most {group.servers_per_host_max} allowed on each host"
    return text
