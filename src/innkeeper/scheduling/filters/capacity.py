"""Only hosts with enough left of all that is asked for, themselves or in their pools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import Counting, exact_count
from innkeeper.scheduling.filters import dedication
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "CapacityFilter"
REASON = "the host has not enough left"
READS: Reads = ("amounts",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where each amount is free, on the host or in a pool of its, and is given so.

    A host has to give something itself: a server that took everything of pools would hold
    nothing of where it is.
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
    """What :func:`mask` says of one host."""
    if hosts.pools.row_count:
        mine = mask(hosts, spec, slice(index, index + 1))
        return mine is None or bool(mine[0])
    return hosts.has_left(HostIndex(index), spec.amounts)


def _fits(hosts: HostTable, name: str, amount: int, rows: Rows) -> Mask:
    enough: Mask = hosts.free[name][rows] >= amount
    given = hosts.gives(name, amount, rows)
    return enough if given is None else enough & given


def has(hosts: HostTable, name: str, amount: int, rows: Rows) -> Mask:
    """True where a host, or a pool of its, has one amount and gives it in one piece."""
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


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Each amount beside the most that a single host has left of it.

    Hosts that are dedicated to others are not looked at: what they have would not have helped,
    and is not for everybody to know.
    """
    return _missing(hosts, spec, _some)


def missing_counted(hosts: HostTable, spec: RequestSpec) -> str:
    """The same, with the number of hosts that do not give out such an amount."""
    return _missing(hosts, spec, exact_count)


def _some(hosts: HostTable, found: Mask | None) -> str:
    # How many would tell whoever may use a pcloud how many hosts it has.
    return "some"


def _missing(hosts: HostTable, spec: RequestSpec, count: Counting) -> str:
    mine = dedication.mask(hosts, spec, slice(None))
    return "; ".join(
        _line(hosts, name, amount, mine, count) for name, amount in spec.amounts.items()
    )


def _line(hosts: HostTable, name: str, amount: int, mine: Mask, count: Counting) -> str:
    free = hosts.free.get(name)
    most = 0 if free is None else max(0, int(free[mine].max(initial=0)))
    told = f"{name}: {amount} asked for, at most {most} left on one host"
    given = None if free is None else hosts.gives(name, amount, slice(None))
    if free is not None and given is not None:
        unable: Mask = ~given & (free > 0) & mine
        if unable.any():
            told += f", {count(hosts, unable)} hosts do not give out such an amount"
    return told + _pools_line(hosts, name, amount, mine)


def _pools_line(hosts: HostTable, name: str, amount: int, mine: Mask) -> str:
    pools = hosts.pools
    most = pools.most(name) if pools.row_count else None
    if most is None:
        return ""
    # Only those that serve somebody: what others have would not have helped.
    codes = np.unique(hosts.membership_codes[mine])
    if not codes.any():
        return ""
    told = f" and {max(0, int(most[codes].max()))} in one pool that serves hosts"
    able = pools.able(name, amount)
    is_enough = bool((most[codes] >= amount).any())
    if is_enough and able is not None and not able[codes].any():
        told += ", which does not give out such an amount"
    return told


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """How much of each amount one host has not."""
    row = slice(index, index + 1)
    told = [_lack(hosts, name, amount, row) for name, amount in spec.amounts.items()]
    return [each for each in told if each] or ["all of it would be taken of pools"]


def _lack(hosts: HostTable, name: str, amount: int, row: slice) -> str:
    if name not in hosts.free:
        return f"{name}: {amount} of {amount} missing"
    if has(hosts, name, amount, row)[0]:
        return ""
    left = max(0, int(hosts.left(name, row)[0]))
    if left < amount:
        return f"{name}: {amount - left} of {amount} missing"
    return f"{name}: {amount} are not given out in one piece"
