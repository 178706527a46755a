"""Decides which hosts have reported their capabilities recently.

A host's capabilities count as unknown if its agent has not reported them for more than
``capabilities_max_age_s`` seconds. Unknown capabilities meet no requirement.
"""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable


def fresh(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True for each host with known capabilities, or None if all hosts have them."""
    if _are_all_fresh(hosts, spec):
        return None
    known: Mask = hosts.facts_seen_s[rows] >= _oldest_s(spec)
    return known


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Return a cache key that changes if the set of hosts with known capabilities changes."""
    if _are_all_fresh(hosts, spec):
        return None
    known: Mask = hosts.facts_seen_s >= _oldest_s(spec)
    return known.tobytes()


def _are_all_fresh(hosts: HostTable, spec: RequestSpec) -> bool:
    return hosts.stale_since_s() >= _oldest_s(spec)


def _oldest_s(spec: RequestSpec) -> float:
    return spec.now_s - spec.rules.capabilities_max_age_s
