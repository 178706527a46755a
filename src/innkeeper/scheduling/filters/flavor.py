"""Keep only hosts with enough memory and disk. Their capabilities must equal the extra specs.

This is the filter of the first distributed scheduler. Unlike ``CapacityFilter``, this filter
ignores unit rules. Unlike ``ComputeCapabilitiesFilter``, this filter supports no operators.
"""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from innkeeper.domain.placing import Comparison, RequestSpec
from innkeeper.scheduling import comparisons
from innkeeper.scheduling.facts import freshness
from innkeeper.scheduling.facts.masks import Counting, exact_count, nowhere, public_count
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "InstanceTypeFilter"
REASON = "the host has too little memory or disk, or does not match the flavor's extra specs"
READS: Reads = ("amounts", "flavor_specs", "rules")

CLASSES = ("MEMORY_MB", "DISK_GB")
SCOPE = "capabilities:"
NO_DEMAND = frozenset({"group_policy"})
"""Unscoped extra specs that are not requirements on hosts."""


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where the host or its pools have enough memory and disk, and all specs match."""
    if not _amounts(spec).keys() <= hosts.free.keys():
        return nowhere(hosts, rows)
    enough = [_fits(hosts, name, amount, rows) for name, amount in _amounts(spec).items()]
    equal = [comparisons.mask(hosts.capability(c.name), c, rows) for c in _equalities(spec)]
    if equal and (fresh := freshness.fresh(hosts, spec, rows)) is not None:
        equal.append(fresh)
    demands = [*enough, *equal]
    return reduce(np.logical_and, demands) if demands else None


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Return a cache key that changes if the set of hosts with known capabilities changes."""
    return freshness.stamp(hosts, spec) if _equalities(spec) else None


def _amounts(spec: RequestSpec) -> dict[str, int]:
    return {name: amount for name, amount in spec.amounts.items() if name in CLASSES}


def _fits(hosts: HostTable, name: str, amount: int, rows: Rows) -> Mask:
    enough: Mask = hosts.free[name][rows] >= amount
    lent = hosts.lent(name, amount, rows) if hosts.pools.row_count else None
    return enough if lent is None else enough | lent


def _equalities(spec: RequestSpec) -> list[Comparison]:
    """Convert each extra spec about a capability to a comparison of texts."""
    pairs = [(key.removeprefix(SCOPE), text) for key, text in spec.flavor_specs if _applies(key)]
    return [Comparison(key.replace(":", "."), comparisons.PLAIN, (text,)) for key, text in pairs]


def _applies(key: str) -> bool:
    return key.startswith(SCOPE) or (":" not in key and key not in NO_DEMAND)


def _missing(hosts: HostTable, spec: RequestSpec, count: Counting) -> str:
    amounts = [_amount_line(hosts, name, amount) for name, amount in _amounts(spec).items()]
    return "; ".join([*amounts, *(_line(hosts, each, count) for each in _equalities(spec))])


def _amount_line(hosts: HostTable, name: str, amount: int) -> str:
    free = hosts.free.get(name)
    most = max(0, int(free.max(initial=0.0))) if free is not None else 0
    return f"{name}: {amount} requested, at most {most} left on one host"


def _line(hosts: HostTable, each: Comparison, count: Counting) -> str:
    found = count(hosts, comparisons.mask(hosts.capability(each.name), each, slice(None)))
    return f"capability {each.name} equal to {each.operands[0]!r}: on {found} hosts"


missing = partial(_missing, count=public_count)
"""Describes each requested amount, with the largest free amount on one host. Also describes each
extra spec, with the number of matching hosts."""
missing_counted = partial(_missing, count=exact_count)
