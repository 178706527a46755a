"""Provides masks and counts for several filters."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from innkeeper.snapshot.amounts import Indexes, Mask, Rows
from innkeeper.snapshot.columns import HostTable


def row_count(hosts: HostTable, rows: Rows) -> int:
    """Return the number of hosts in ``rows``."""
    return int(hosts.is_open[rows].shape[0])


def has_dedicated(hosts: HostTable) -> bool:
    """Return whether any host is dedicated."""
    return hosts.dedications.has_dedicated(hosts.dedication_codes)


Counting = Callable[[HostTable, Mask | None], str]
"""A function that formats the number of hosts in a mask, for users or for administrators."""


def public_count(hosts: HostTable, found: Mask | None) -> str:
    """Return the number of hosts in a form that all users may see.

    If any host is dedicated, a number above 0 becomes "some", because the number may include
    dedicated hosts.
    """
    count = exact_count(hosts, found)
    return "some" if count != "0" and has_dedicated(hosts) else count


def exact_count(hosts: HostTable, found: Mask | None) -> str:
    """Return the number of hosts, for administrators."""
    return str(0 if found is None else int(np.count_nonzero(found)))


def nowhere(hosts: HostTable, rows: Rows) -> Mask:
    """Return a mask that is False for every row."""
    return np.zeros(row_count(hosts, rows), dtype=np.bool_)


def named(hosts: HostTable, names: Collection[str], rows: Rows) -> Mask:
    """Return True for the hosts with these names. Unknown names are ignored."""
    return among(hosts, hosts.rows_named(names), rows)


def among(hosts: HostTable, few: Indexes, rows: Rows) -> Mask:
    """Return a mask over ``rows`` that is True for the rows in ``few``."""
    only: Mask = np.zeros(hosts.host_count, dtype=np.bool_)
    only[few] = True
    return only[rows]
