"""Keep only hosts that are enabled and up.

A host is up if its agent sent a recent heartbeat and no administrator forced the host down.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import Counting, exact_count, public_count
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "ComputeFilter"
REASON = "the host is disabled or down"
READS: Reads = ()


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
    """Return True where a host is enabled and up at the time of the request."""
    if _are_all_up(hosts, spec):
        # Usually, all agents are up. This path is then ten times as fast as looking up each agent.
        return hosts.is_open[rows]
    usable: Mask = hosts.is_open[rows] & _is_agent_up(hosts, spec)[hosts.agent_codes[rows]]
    return usable


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Return a cache key that changes if the set of agents that are up changes."""
    return True if _are_all_up(hosts, spec) else _is_agent_up(hosts, spec).tobytes()


def _are_all_up(hosts: HostTable, spec: RequestSpec) -> bool:
    return hosts.silent_since_s() >= spec.now_s - spec.silence_max_s


def _is_agent_up(hosts: HostTable, spec: RequestSpec) -> Mask:
    is_up: Mask = hosts.agent_seen_s >= spec.now_s - spec.silence_max_s
    return is_up


def _missing(hosts: HostTable, spec: RequestSpec, count: Counting) -> str:
    closed = count(hosts, ~hosts.is_open)
    silent = count(hosts, ~_is_agent_up(hosts, spec)[hosts.agent_codes])
    return (
        f"{closed} disabled or forced down, "
        f"{silent} down (no heartbeat for {spec.silence_max_s:g} s)"
    )


missing = partial(_missing, count=public_count)
"""States how many hosts are disabled or forced down, and how many have an agent that is down. The
numbers are hidden if any host is dedicated."""
missing_counted = partial(_missing, count=exact_count)


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """Say whether the host is disabled or forced down, and how long its agent has been down."""
    texts = [] if hosts.is_open[index] else ["it is disabled or forced down"]
    silent_s = spec.now_s - float(hosts.agent_seen_s[hosts.agent_codes[index]])
    if silent_s > spec.silence_max_s:
        was = f"no heartbeat for {silent_s:.0f} s" if np.isfinite(silent_s) else "no heartbeat yet"
        texts.append(f"its agent is down: {was}")
    return texts
