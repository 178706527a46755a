"""Masks that several filters make alike."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from innkeeper.snapshot.amounts import Indexes, Mask, Rows
from innkeeper.snapshot.columns import HostTable


def row_count(hosts: HostTable, rows: Rows) -> int:
    """How many rows are meant."""
    return int(hosts.is_open[rows].shape[0])


def has_dedicated(hosts: HostTable) -> bool:
    """Whether some hosts are kept for somebody, whoever that is."""
    return hosts.dedications.has_dedicated(hosts.dedication_codes)


Counting = Callable[[HostTable, Mask | None], str]
"""How many hosts are meant, in words for one kind of reader."""


def told_count(hosts: HostTable, found: Mask | None) -> str:
    """How many hosts are meant, as everybody may read it.

    No number where some hosts are dedicated: these would be counted with the others.
    """
    count = exact_count(hosts, found)
    return "some" if count != "0" and has_dedicated(hosts) else count


def exact_count(hosts: HostTable, found: Mask | None) -> str:
    """How many hosts are meant, in numbers; for administrators."""
    return str(0 if found is None else int(np.count_nonzero(found)))


def nowhere(hosts: HostTable, rows: Rows) -> Mask:
    """False for every row."""
    return np.zeros(row_count(hosts, rows), dtype=np.bool_)


def named(hosts: HostTable, names: Collection[str], rows: Rows) -> Mask:
    """True for the hosts with these names; names that no host has are passed over."""
    return among(hosts, hosts.rows_named(names), rows)


def among(hosts: HostTable, few: Indexes, rows: Rows) -> Mask:
    """True for these few rows, wherever they are among ``rows``."""
    only: Mask = np.zeros(hosts.host_count, dtype=np.bool_)
    only[few] = True
    return only[rows]
