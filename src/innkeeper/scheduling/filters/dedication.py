"""Dedicated hosts for the requests that may use them, and for no others.

This is the rule, whole: for whom a host is, and which requests may use it.

==============================  ============================================================
a request that names            may use
==============================  ============================================================
nothing                         hosts for everybody, and open hosts of its automatic pclouds
one pcloud or several           their open hosts, if its project may use the pcloud
a host besides                  the open host of that name in one of these pclouds
a reservation                   the open hosts of that reservation, if the lease is its own
a pcloud and a reservation      nothing
==============================  ============================================================

A pcloud or reservation that is not there and one that the project may not use look the same.
So do a reservation that has not begun and one that is over.

Two names stand for the rule, because faults and explanations tell them apart: ``PcloudFilter``
answers for requests that name no reservation, ``LeaseFilter`` for those that name one. Both are
always in force. Neither tells by numbers what it removed.

Nearly all requests name nothing. What :class:`Unnamed` says of those depends on nothing that is
rare, so it is remembered. The other two are asked each time, and look at few hosts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import among, nowhere
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Indexes, Mask, Rows
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import GENERAL, is_one_of, of_reservation

PCLOUD = "PcloudFilter"
LEASE = "LeaseFilter"
NAMES = frozenset({PCLOUD, LEASE})
REASON = "the host is dedicated to others, or is not one of the pcloud that was named"


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
    """True where the request may use a host, as far as dedication goes."""
    # One of them always has something to say.
    said = (each.mask(hosts, spec, rows) for each in (PCLOUD_FILTER, LEASE_FILTER))
    found: Mask = reduce(np.logical_and, (mine for mine in said if mine is not None))
    return found


class Unnamed:
    """What is said of requests that name no dedicated hosts.

    Of the project it reads no more than its automatic pclouds, so many requests share a mask.
    """

    NAME = PCLOUD
    REASON = REASON
    READS: Reads = ("names_dedicated", "automatic_pclouds")

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """True on hosts for everybody, and on open hosts of automatic pclouds."""
        if spec.names_dedicated:
            return None
        codes = hosts.dedication_codes[rows]
        allowed: Mask = codes == GENERAL
        taken_in = hosts.dedications.codes(spec.automatic_pclouds)
        if taken_in:
            allowed |= is_one_of(codes, taken_in) & hosts.is_dedication_open[rows]
        return allowed

    def admits(self, hosts: HostTable, spec: RequestSpec, index: int) -> bool:
        """What :meth:`mask` says of one row."""
        code = hosts.dedication_codes[index]
        if spec.names_dedicated or code == GENERAL:
            return True
        taken_in = hosts.dedications.codes(spec.automatic_pclouds)
        return bool(code in taken_in and hosts.is_dedication_open[index])

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """See :func:`_missing_pcloud`."""
        return _missing_pcloud(hosts, spec)


class PcloudNamed:
    """What is said of requests that name a pcloud, and perhaps a host of it."""

    NAME = PCLOUD
    REASON = REASON
    READS: Reads = ("pclouds", "pcloud_host", "project_id")

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """True on open hosts of these pclouds, or on those of the name that is asked for."""
        if not spec.pclouds:
            return None
        usable = hosts.dedications.usable(spec.pclouds, spec.project_id)
        allowed = _open_to(hosts, usable, rows)
        if spec.pcloud_host is not None:
            allowed &= among(hosts, hosts.rows_called(usable, spec.pcloud_host), rows)
        return allowed

    def few(self, hosts: HostTable, spec: RequestSpec) -> Indexes | None:
        """The rows of which :meth:`mask` says True, in order."""
        if not spec.pclouds:
            return None
        usable = hosts.dedications.usable(spec.pclouds, spec.project_id)
        if spec.pcloud_host is None:
            return _rows_open_to(hosts, usable)
        rows = hosts.rows_called(usable, spec.pcloud_host)
        return np.unique(rows[hosts.is_dedication_open[rows]])

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """See :func:`_missing_pcloud`."""
        return _missing_pcloud(hosts, spec)


class PcloudFilter:
    """What is said of requests that name no reservation, in two halves."""

    NAME = PCLOUD
    REASON = REASON
    HALVES = (Unnamed(), PcloudNamed())
    READS: Reads = (*Unnamed.READS, *PcloudNamed.READS)
    HINTS = ("pcloud", "pcloud_host")

    def __repr__(self) -> str:
        return self.NAME

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """What the half says that this request concerns; None where it names a reservation."""
        said = [half.mask(hosts, spec, rows) for half in self.HALVES]
        return next((each for each in said if each is not None), None)

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """See :func:`_missing_pcloud`."""
        return _missing_pcloud(hosts, spec)


class LeaseFilter:
    """What is said of requests that name a reservation."""

    NAME = LEASE
    REASON = "the host is not one of the reservation that was named"
    READS: Reads = ("reservation", "project_id")
    HINTS = ("reservation",)

    def __repr__(self) -> str:
        return self.NAME

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """True on the reservation's hosts, while it runs."""
        if spec.reservation is None:
            return None
        return _open_to(hosts, _reserved(hosts, spec), rows)

    def few(self, hosts: HostTable, spec: RequestSpec) -> Indexes | None:
        """The rows of which :meth:`mask` says True, in order."""
        if spec.reservation is None:
            return None
        return _rows_open_to(hosts, _reserved(hosts, spec))

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """What was named. A reservation that the project may not use does not exist for it."""
        if not _open_to(hosts, _reserved(hosts, spec), slice(None)).any():
            return "no reservation of that id has hosts for this project at present"
        return "only the hosts of that reservation are meant"


PCLOUD_FILTER, LEASE_FILTER = PcloudFilter(), LeaseFilter()


def _reserved(hosts: HostTable, spec: RequestSpec) -> list[int]:
    named = [] if spec.reservation is None else [of_reservation(spec.reservation)]
    return hosts.dedications.usable(named, spec.project_id)


def _open_to(hosts: HostTable, usable: Collection[int], rows: Rows) -> Mask:
    """True where a host has one of these codes, and is open."""
    if not usable:
        return nowhere(hosts, rows)
    codes = hosts.dedication_codes[rows]
    allowed: Mask = is_one_of(codes, usable) & hosts.is_dedication_open[rows]
    return allowed


def _rows_open_to(hosts: HostTable, usable: Sequence[int]) -> Indexes:
    return hosts.dedications.open_rows(usable, hosts.dedication_codes, hosts.is_dedication_open)


def _missing_pcloud(hosts: HostTable, spec: RequestSpec) -> str:
    """What was named. A pcloud that the project may not use does not exist for it.

    No numbers: the operator decides whether to tell how many hosts are dedicated. How many a
    pcloud has is for its owner to know, and other projects that may use it read this as well.
    """
    if not spec.names_dedicated:
        return "no pcloud was named, and these hosts are dedicated"
    usable = hosts.dedications.usable(spec.pclouds, spec.project_id)
    # A code outlives its hosts, in this process and in no other.
    if not usable or not is_one_of(hosts.dedication_codes, usable).any():
        return "no pcloud of that id has hosts for this project"
    if spec.pcloud_host is not None:
        return _missing_host(hosts, hosts.rows_called(usable, spec.pcloud_host))
    if not _open_to(hosts, usable, slice(None)).any():
        return "none of its hosts takes new servers"
    return "only its hosts that take new servers are meant"


def _missing_host(hosts: HostTable, rows: Indexes) -> str:
    if not rows.shape[0]:
        return "the host that was named is not there"
    if not hosts.is_dedication_open[rows].any():
        return "the host that was named takes no new servers"
    return "only the host that was named is meant"
