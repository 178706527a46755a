"""Only hosts whose address is in the range that the request's hints name."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import Network, RequestSpec
from innkeeper.scheduling.facts.masks import Counting, exact_count, told_count
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "SimpleCIDRAffinityFilter"
REASON = "the host's address is not in the range asked for"
READS: Reads = ("near",)
HINTS = ("build_near_host_ip", "cidr")

BITS = {4: 32, 6: 128}
HALF_BITS = 64
HALF = 2**HALF_BITS - 1


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where the address has the range's version, and begins as the range does.

    A host that has not told its address is in no range.
    """
    near = spec.near
    if near is None:
        return None
    is_fixed, wanted = _range(near)
    inside: Mask = hosts.ip_versions[rows] == near.version
    high, low = (np.uint64(part) for part in _halves(is_fixed))
    wanted_high, wanted_low = (np.uint64(part) for part in _halves(wanted))
    inside &= (hosts.ip_low[rows] & low) == wanted_low
    inside &= (hosts.ip_high[rows] & high) == wanted_high
    return inside


def _range(near: Network) -> tuple[int, int]:
    """Which bits are the same all over the range, and what they are."""
    bits = BITS[near.version]
    is_fixed = ((1 << near.prefix) - 1) << (bits - near.prefix)
    return is_fixed, near.address & is_fixed


def _halves(number: int) -> tuple[int, int]:
    return number >> HALF_BITS, number & HALF


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """How long the range's prefix is, and how many hosts told an address at all."""
    return _missing(hosts, spec, told_count)


def missing_counted(hosts: HostTable, spec: RequestSpec) -> str:
    """The same in numbers."""
    return _missing(hosts, spec, exact_count)


def _missing(hosts: HostTable, spec: RequestSpec, count: Counting) -> str:
    if spec.near is None:
        return "no range asked for"
    told = count(hosts, hosts.ip_versions == spec.near.version)
    return (
        f"an address in a range of IPv{spec.near.version} with {spec.near.prefix} bits asked "
        f"for; {told} hosts have an address of that version"
    )
