"""Only hosts with memory and disk for the flavor that are what its extra specs say.

The rule of the first distributed scheduler, for who wants just this: amounts as they are free,
without the unit rules that ``CapacityFilter`` keeps, and extra specs that equal capabilities,
without the operators that ``ComputeCapabilitiesFilter`` knows.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from innkeeper.domain.placing import Comparison, RequestSpec
from innkeeper.scheduling import comparisons
from innkeeper.scheduling.facts import freshness
from innkeeper.scheduling.facts.masks import Counting, exact_count, nowhere, told_count
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "InstanceTypeFilter"
REASON = "the host has too little memory or disk, or is not what the flavor's extra specs say"
READS: Reads = ("amounts", "flavor_specs", "rules")

CLASSES = ("MEMORY_MB", "DISK_GB")
SCOPE = "capabilities:"
NO_DEMAND = frozenset({"group_policy"})
"""Extra specs without a scope that say nothing about a host."""


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where memory and disk are free, there or in a pool, and all extra specs hold."""
    if not _wanted(spec).keys() <= hosts.free.keys():
        return nowhere(hosts, rows)
    enough = [_fits(hosts, name, amount, rows) for name, amount in _wanted(spec).items()]
    equal = [comparisons.mask(hosts.capability(c.name), c, rows) for c in _equalities(spec)]
    if equal and (fresh := freshness.fresh(hosts, spec, rows)) is not None:
        equal.append(fresh)
    demands = [*enough, *equal]
    return reduce(np.logical_and, demands) if demands else None


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Which hosts' capabilities are known, if any are asked for."""
    return freshness.stamp(hosts, spec) if _equalities(spec) else None


def _wanted(spec: RequestSpec) -> dict[str, int]:
    return {name: amount for name, amount in spec.amounts.items() if name in CLASSES}


def _fits(hosts: HostTable, name: str, amount: int, rows: Rows) -> Mask:
    enough: Mask = hosts.free[name][rows] >= amount
    lent = hosts.lent(name, amount, rows) if hosts.pools.row_count else None
    return enough if lent is None else enough | lent


def _equalities(spec: RequestSpec) -> list[Comparison]:
    """Each extra spec about a capability, as the demand that both be the same text."""
    about = [(key.removeprefix(SCOPE), text) for key, text in spec.flavor_specs if _is_one(key)]
    return [Comparison(key.replace(":", "."), comparisons.PLAIN, (text,)) for key, text in about]


def _is_one(key: str) -> bool:
    return key.startswith(SCOPE) or (":" not in key and key not in NO_DEMAND)


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Memory and disk beside the most there is, and how many hosts are what each spec says."""
    return _missing(hosts, spec, told_count)


def missing_counted(hosts: HostTable, spec: RequestSpec) -> str:
    """The same in numbers."""
    return _missing(hosts, spec, exact_count)


def _missing(hosts: HostTable, spec: RequestSpec, count: Counting) -> str:
    amounts = [_line(hosts, name, amount) for name, amount in _wanted(spec).items()]
    return "; ".join([*amounts, *(_told(hosts, each, count) for each in _equalities(spec))])


def _line(hosts: HostTable, name: str, amount: int) -> str:
    free = hosts.free.get(name)
    most = max(0, int(free.max(initial=0.0))) if free is not None else 0
    return f"{name}: {amount} asked for, at most {most} left on one host"


def _told(hosts: HostTable, each: Comparison, count: Counting) -> str:
    found = comparisons.mask(hosts.capability(each.name), each, slice(None))
    there = count(hosts, found)
    return f"capability {each.name} equal to {each.operands[0]!r}: on {there} hosts"
