"""Whether what agents said of their hosts' capabilities still counts.

A host whose agent has not reported its capabilities for ``capabilities_max_age_s`` may have
become another host; what it said is unknown from then on, and what is unknown is not promised.
"""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable


def fresh(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where capabilities are known; None where they are all over the table."""
    if _are_all_fresh(hosts, spec):
        return None
    known: Mask = hosts.facts_seen_s[rows] >= _oldest_s(spec)
    return known


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Equal for two moments at which the same hosts' capabilities are known."""
    if _are_all_fresh(hosts, spec):
        return None
    known: Mask = hosts.facts_seen_s >= _oldest_s(spec)
    return known.tobytes()


def _are_all_fresh(hosts: HostTable, spec: RequestSpec) -> bool:
    return hosts.stale_since_s() >= _oldest_s(spec)


def _oldest_s(spec: RequestSpec) -> float:
    return spec.now_s - spec.rules.capabilities_max_age_s
