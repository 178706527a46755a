"""Only hosts that are enabled and whose agents spoke lately."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.columns import HostTable

NAME = "ComputeFilter"
REASON = "the host is disabled or its agent is silent"


def mask(hosts: HostTable, spec: RequestSpec, rows: slice) -> Mask:
    """True where a host is open for servers and alive at the moment of asking."""
    is_agent_up: Mask = hosts.agent_seen_s >= spec.now_s - spec.silence_max_s
    if (is_agent_up | ~hosts.agent_has_hosts()).all():
        # The usual case, and ten times as fast: nobody has to look his agent up.
        return hosts.is_open[rows]
    usable: Mask = hosts.is_open[rows] & is_agent_up[hosts.agent_codes[rows]]
    return usable


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """How many hosts are closed, and how many silent."""
    closed = hosts.host_count - int(np.count_nonzero(hosts.is_open))
    is_agent_up: Mask = hosts.agent_seen_s >= spec.now_s - spec.silence_max_s
    silent = int(np.count_nonzero(~is_agent_up[hosts.agent_codes]))
    return f"{closed} disabled or forced down, {silent} silent for {spec.silence_max_s:g} s"
