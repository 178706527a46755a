"""Only hosts with enough left of everything that is asked for."""

from __future__ import annotations

from functools import reduce

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.columns import HostTable

NAME = "CapacityFilter"
REASON = "the host has not enough left"


def mask(hosts: HostTable, spec: RequestSpec, rows: slice) -> Mask | None:
    """True where each amount is free and is given out in one piece."""
    if not spec.amounts.keys() <= hosts.free.keys():
        return np.zeros(hosts.host_count, dtype=np.bool_)[rows]
    each = [_fits(hosts, name, amount, rows) for name, amount in spec.amounts.items()]
    return reduce(np.logical_and, each) if each else None


def _fits(hosts: HostTable, name: str, amount: int, rows: slice) -> Mask:
    enough: Mask = hosts.free[name][rows] >= amount
    given = hosts.gives(name, amount, rows)
    return enough if given is None else enough & given


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Each amount beside the most that a single host has left of it."""
    return "; ".join(_line(hosts, name, amount) for name, amount in spec.amounts.items())


def _line(hosts: HostTable, name: str, amount: int) -> str:
    free = hosts.free.get(name)
    most = max(0, int(free.max())) if free is not None and free.shape[0] else 0
    told = f"{name}: {amount} asked for, at most {most} left on one host"
    given = None if free is None else hosts.gives(name, amount, slice(None))
    if free is None or given is None:
        return told
    refusing = int(np.count_nonzero(~given & (free > 0)))
    if refusing:
        told += f", {refusing} hosts do not give out such an amount"
    return told
