"""Only hosts with the traits and capabilities that the flavor's extra specs ask for."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling import comparisons
from innkeeper.snapshot.columns import HostTable, Mask

NAME = "ComputeCapabilitiesFilter"
REASON = "the host lacks a trait or capability, or has a forbidden trait"


def mask(hosts: HostTable, spec: RequestSpec, rows: slice) -> Mask | None:
    """True where all required traits are, no forbidden one is, and all comparisons hold."""
    if not (spec.required_traits or spec.forbidden_traits or spec.comparisons):
        return None
    left: Mask = np.ones(hosts.host_count, dtype=np.bool_)[rows]
    for name in spec.required_traits:
        if name not in hosts.traits:
            return np.zeros_like(left)
        left = left & hosts.traits[name][rows]
    for name in spec.forbidden_traits & hosts.traits.keys():
        left = left & ~hosts.traits[name][rows]
    for comparison in spec.comparisons:
        column = hosts.capability(comparison.name)
        left = left & comparisons.mask(column, comparison, rows)
    return left


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Every demand, with the number of hosts that meet it alone."""
    demands = [
        f"trait {name}: on {_count(hosts.traits.get(name))} hosts"
        for name in sorted(spec.required_traits)
    ]
    demands += [
        f"forbidden trait {name}: on {_count(hosts.traits.get(name))} hosts"
        for name in sorted(spec.forbidden_traits)
    ]
    for each in spec.comparisons:
        met = comparisons.mask(hosts.capability(each.name), each, slice(None))
        words = " ".join((each.name, each.operator, *each.operands))
        demands.append(f"capability {words}: on {_count(met)} hosts")
    return "; ".join(demands)


def _count(column: Mask | None) -> int:
    return 0 if column is None else int(np.count_nonzero(column))
