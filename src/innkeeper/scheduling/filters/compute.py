"""Only hosts that are enabled and whose agents spoke lately."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import Counting, exact_count, told_count
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "ComputeFilter"
REASON = "the host is disabled or its agent is silent"
READS: Reads = ()


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
    """True where a host is open for servers and alive at the moment of asking."""
    if _are_all_up(hosts, spec):
        # The usual case, and ten times as fast: nobody has to look his agent up.
        return hosts.is_open[rows]
    is_agent_up: Mask = hosts.agent_seen_s >= spec.now_s - spec.silence_max_s
    usable: Mask = hosts.is_open[rows] & is_agent_up[hosts.agent_codes[rows]]
    return usable


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Which agents are up."""
    if _are_all_up(hosts, spec):
        return True
    is_agent_up: Mask = hosts.agent_seen_s >= spec.now_s - spec.silence_max_s
    return is_agent_up.tobytes()


def _are_all_up(hosts: HostTable, spec: RequestSpec) -> bool:
    return hosts.silent_since_s() >= spec.now_s - spec.silence_max_s


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """How many hosts are closed, and how many silent; no numbers where some are dedicated."""
    return _missing(hosts, spec, told_count)


def missing_counted(hosts: HostTable, spec: RequestSpec) -> str:
    """The same in numbers."""
    return _missing(hosts, spec, exact_count)


def _missing(hosts: HostTable, spec: RequestSpec, count: Counting) -> str:
    closed = count(hosts, ~hosts.is_open)
    is_agent_up: Mask = hosts.agent_seen_s >= spec.now_s - spec.silence_max_s
    silent = count(hosts, ~is_agent_up[hosts.agent_codes])
    return f"{closed} disabled or forced down, {silent} silent for {spec.silence_max_s:g} s"


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """Whether one host is closed, and for how long its agent was silent."""
    told = [] if hosts.is_open[index] else ["it is disabled or forced down"]
    silent_s = spec.now_s - float(hosts.agent_seen_s[hosts.agent_codes[index]])
    if silent_s > spec.silence_max_s:
        was = f"silent for {silent_s:.0f} s" if np.isfinite(silent_s) else "never heard"
        told.append(f"its agent was {was}")
    return told
