"""Keep only hosts with an address in the range that the scheduler hints give."""

from __future__ import annotations

from functools import partial

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import Counting, exact_count, public_count
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "SimpleCIDRAffinityFilter"
REASON = "the host's address is outside the requested range"
READS: Reads = ("near",)
HINTS = ("build_near_host_ip", "cidr")

BITS = {4: 32, 6: 128}
HALF_BITS = 64
HALF = 2**HALF_BITS - 1


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where the host's address is in the requested range."""
    near = spec.near
    if near is None:
        return None
    netmask = ((1 << near.prefix) - 1) << (BITS[near.version] - near.prefix)
    high, low = _halves(netmask)
    network_high, network_low = _halves(near.address & netmask)
    inside: Mask = hosts.ip_versions[rows] == near.version
    inside &= (hosts.ip_low[rows] & low) == network_low
    inside &= (hosts.ip_high[rows] & high) == network_high
    return inside


def _halves(number: int) -> tuple[np.uint64, np.uint64]:
    return np.uint64(number >> HALF_BITS), np.uint64(number & HALF)


def _missing(hosts: HostTable, spec: RequestSpec, count: Counting) -> str:
    if spec.near is None:
        return "no range requested"
    hosts_there = count(hosts, hosts.ip_versions == spec.near.version)
    return (
        f"an address in an IPv{spec.near.version} range with a prefix of {spec.near.prefix} bits "
        f"requested; {hosts_there} hosts have an IPv{spec.near.version} address"
    )


missing = partial(_missing, count=public_count)
"""States the length of the prefix, and how many hosts have an address of the same IP version."""
missing_counted = partial(_missing, count=exact_count)
