"""Keep only hosts that have enough free capacity, either on the host itself or in pools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce

import numpy as np

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import Counting, exact_count
from innkeeper.scheduling.filters import dedication
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "CapacityFilter"
REASON = "the host has too little free capacity"
READS: Reads = ("amounts",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where the host or one of its pools can supply each requested amount.

    The amount must be free, and the unit rules (``min_unit``, ``max_unit`` and ``step_size``) must
    allow it. At least one amount must come from the host itself, because otherwise the server would
    have no allocation on its host.
    """
    if not spec.amounts.keys() <= hosts.free.keys():
        return np.zeros(hosts.host_count, dtype=np.bool_)[rows]
    own = {name: _fits(hosts, name, amount, rows) for name, amount in spec.amounts.items()}
    if not own:
        return None
    if not hosts.pools.row_count:
        return reduce(np.logical_and, own.values())
    return _with_pools(hosts, spec, rows, own)


def admits(hosts: HostTable, spec: RequestSpec, index: int) -> bool:
    """Return the result of :func:`mask` for one host."""
    if hosts.pools.row_count:
        result = mask(hosts, spec, slice(index, index + 1))
        return result is None or bool(result[0])
    return hosts.has_left(HostIndex(index), spec.amounts)


def _fits(hosts: HostTable, name: str, amount: int, rows: Rows) -> Mask:
    enough: Mask = hosts.free[name][rows] >= amount
    given = hosts.gives(name, amount, rows)
    return enough if given is None else enough & given


def has(hosts: HostTable, name: str, amount: int, rows: Rows) -> Mask:
    """Return True where a host or one of its pools can supply this amount in one allocation."""
    fits = _fits(hosts, name, amount, rows)
    lent = hosts.lent(name, amount, rows) if hosts.pools.row_count else None
    return fits if lent is None else fits | lent


def _with_pools(hosts: HostTable, spec: RequestSpec, rows: Rows, own: Mapping[str, Mask]) -> Mask:
    lent = {name: hosts.lent(name, amount, rows) for name, amount in spec.amounts.items()}
    each = [fits if (more := lent[name]) is None else fits | more for name, fits in own.items()]
    found: Mask = reduce(np.logical_and, each)
    if all(more is not None for more in lent.values()):
        found = found & reduce(np.logical_or, own.values())
    return found


def _some(hosts: HostTable, found: Mask | None) -> str:
    # A number would reveal the size of a pcloud to all projects that may use the pcloud.
    return "some"


def _missing(hosts: HostTable, spec: RequestSpec, count: Counting) -> str:
    # Dedicated hosts that the request cannot use are left out, since their state is not public.
    usable = dedication.mask(hosts, spec, slice(None))
    return "; ".join(
        _line(hosts, name, amount, usable, count) for name, amount in spec.amounts.items()
    )


missing = partial(_missing, count=_some)
"""Describes each requested amount, with the largest amount that is free on one host."""
missing_counted = partial(_missing, count=exact_count)


def _line(hosts: HostTable, name: str, amount: int, usable: Mask, count: Counting) -> str:
    free = hosts.free.get(name)
    most = 0 if free is None else max(0, int(free[usable].max(initial=0)))
    text = f"{name}: {amount} requested, at most {most} left on one host"
    given = None if free is None else hosts.gives(name, amount, slice(None))
    if free is not None and given is not None:
        unable: Mask = ~given & (free > 0) & usable
        if unable.any():
            text += f", {count(hosts, unable)} hosts do not allow this amount in one allocation"
    return text + _pools_line(hosts, name, amount, usable)


def _pools_line(hosts: HostTable, name: str, amount: int, usable: Mask) -> str:
    pools = hosts.pools
    most = pools.most(name) if pools.row_count else None
    if most is None:
        return ""
    # Only the pools that serve these hosts are described.
    codes = np.unique(hosts.membership_codes[usable])
    if not codes.any():
        return ""
    text = f" and {max(0, int(most[codes].max()))} in one pool that serves hosts"
    able = pools.able(name, amount)
    is_enough = bool((most[codes] >= amount).any())
    if is_enough and able is not None and not able[codes].any():
        text += ", which does not allow this amount in one allocation"
    return text


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """Describe the missing part of each amount."""
    row = slice(index, index + 1)
    lines = [_lack(hosts, name, amount, row) for name, amount in spec.amounts.items()]
    return [each for each in lines if each] or [
        "all amounts would come from pools; at least one must come from the host"
    ]


def _lack(hosts: HostTable, name: str, amount: int, row: slice) -> str:
    if name not in hosts.free:
        return f"{name}: {amount} of {amount} missing"
    if has(hosts, name, amount, row)[0]:
        return ""
    left = max(0, int(hosts.left(name, row)[0]))
    if left < amount:
        return f"{name}: {amount - left} of {amount} missing"
    return f"{name}: {amount} are not allowed in one allocation"
