"""Keep dedicated hosts for the requests that may use them.

- A request without a pcloud or reservation may use general hosts, and open hosts of its automatic
  pclouds.
- A request that names pclouds may use their open hosts, if its project may use the pcloud.
- If the request also names a host, it may only use the open host of that name in these pclouds.
- A request that names a reservation may use the reservation's open hosts, if the lease belongs to
  the request's project.
- A request that names a pcloud and a reservation may use no host.

Error texts do not reveal whether a pcloud or reservation exists that the project may not use. Nor
do they tell a reservation that has not begun from a reservation that is over.

The rule has two names in faults and explanations: ``PcloudFilter`` for requests without a
reservation, and ``LeaseFilter`` for requests with one. Both are always enabled. Neither reveals
the number of hosts that it removes.

Nearly all requests name neither a pcloud nor a reservation. :class:`Unnamed` reads only fields with
few distinct values, so its result is cached. The other two filters are evaluated per request, on
few hosts.
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
REASON = "the host is dedicated to others, or not part of the named pcloud"


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
    """Return True where the dedication of a host allows the request."""
    # At least one of the two filters applies to every request.
    masks = (each.mask(hosts, spec, rows) for each in (PCLOUD_FILTER, LEASE_FILTER))
    allowed: Mask = reduce(np.logical_and, (each for each in masks if each is not None))
    return allowed


class Unnamed:
    """The part for requests that name no dedicated hosts.

    It reads the project's automatic pclouds rather than its id, so that many requests share a mask.
    """

    NAME = PCLOUD
    REASON = REASON
    READS: Reads = ("names_dedicated", "automatic_pclouds")

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Return True on general hosts, and on open hosts of automatic pclouds."""
        if spec.names_dedicated:
            return None
        codes = hosts.dedication_codes[rows]
        allowed: Mask = codes == GENERAL
        taken_in = hosts.dedications.codes(spec.automatic_pclouds)
        if taken_in:
            allowed |= is_one_of(codes, taken_in) & hosts.is_dedication_open[rows]
        return allowed

    def admits(self, hosts: HostTable, spec: RequestSpec, index: int) -> bool:
        """Return the result of :meth:`mask` for one row."""
        code = hosts.dedication_codes[index]
        if spec.names_dedicated or code == GENERAL:
            return True
        taken_in = hosts.dedications.codes(spec.automatic_pclouds)
        return bool(code in taken_in and hosts.is_dedication_open[index])

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """See :func:`_missing_pcloud`."""
        return _missing_pcloud(hosts, spec)


class PcloudNamed:
    """The part for requests that name a pcloud, and perhaps one of its hosts."""

    NAME = PCLOUD
    REASON = REASON
    READS: Reads = ("pclouds", "pcloud_host", "project_id")

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Return True on open hosts of these pclouds, with the requested name if there is one."""
        if not spec.pclouds:
            return None
        usable = hosts.dedications.usable(spec.pclouds, spec.project_id)
        allowed = _open_to(hosts, usable, rows)
        if spec.pcloud_host is not None:
            allowed &= among(hosts, hosts.rows_called(usable, spec.pcloud_host), rows)
        return allowed

    def few(self, hosts: HostTable, spec: RequestSpec) -> Indexes | None:
        """Return the rows where :meth:`mask` is True, in order."""
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
    """The filter for requests without a reservation, in two halves."""

    NAME = PCLOUD
    REASON = REASON
    HALVES = (Unnamed(), PcloudNamed())
    READS: Reads = (*Unnamed.READS, *PcloudNamed.READS)
    HINTS = ("pcloud", "pcloud_host")

    def __repr__(self) -> str:
        return self.NAME

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Return the mask of the half that applies; None for requests with a reservation."""
        masks = [half.mask(hosts, spec, rows) for half in self.HALVES]
        return next((each for each in masks if each is not None), None)

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """See :func:`_missing_pcloud`."""
        return _missing_pcloud(hosts, spec)


class LeaseFilter:
    """The filter for requests with a reservation."""

    NAME = LEASE
    REASON = "the host is not part of the named reservation"
    READS: Reads = ("reservation", "project_id")
    HINTS = ("reservation",)

    def __repr__(self) -> str:
        return self.NAME

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Return True on the reservation's hosts while the lease is active."""
        if spec.reservation is None:
            return None
        return _open_to(hosts, _reserved(hosts, spec), rows)

    def few(self, hosts: HostTable, spec: RequestSpec) -> Indexes | None:
        """Return the rows where :meth:`mask` is True, in order."""
        if spec.reservation is None:
            return None
        return _rows_open_to(hosts, _reserved(hosts, spec))

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """Describe the removal; hide whether a reservation exists that the project may not use."""
        if not _open_to(hosts, _reserved(hosts, spec), slice(None)).any():
            return "no reservation of that id has hosts for this project at present"
        return "only the hosts of that reservation can be used"


PCLOUD_FILTER, LEASE_FILTER = PcloudFilter(), LeaseFilter()


def _reserved(hosts: HostTable, spec: RequestSpec) -> list[int]:
    named = [] if spec.reservation is None else [of_reservation(spec.reservation)]
    return hosts.dedications.usable(named, spec.project_id)


def _open_to(hosts: HostTable, usable: Collection[int], rows: Rows) -> Mask:
    """Return True on open hosts with one of these codes."""
    if not usable:
        return nowhere(hosts, rows)
    codes = hosts.dedication_codes[rows]
    allowed: Mask = is_one_of(codes, usable) & hosts.is_dedication_open[rows]
    return allowed


def _rows_open_to(hosts: HostTable, usable: Sequence[int]) -> Indexes:
    return hosts.dedications.open_rows(usable, hosts.dedication_codes, hosts.is_dedication_open)


def _missing_pcloud(hosts: HostTable, spec: RequestSpec) -> str:
    """Describe the removal, but hide whether a pcloud exists that the project may not use.

    The text has no numbers. The operator decides whether the number of dedicated hosts is public,
    and only the owner of a pcloud may know its size.
    """
    if not spec.names_dedicated:
        return "the request names no pcloud, and these hosts are dedicated"
    usable = hosts.dedications.usable(spec.pclouds, spec.project_id)
    # In this process, a code may outlive its hosts; the text must not depend on that.
    if not usable or not is_one_of(hosts.dedication_codes, usable).any():
        return "no pcloud of that id has hosts for this project"
    if spec.pcloud_host is not None:
        return _missing_host(hosts, hosts.rows_called(usable, spec.pcloud_host))
    if not _open_to(hosts, usable, slice(None)).any():
        return "none of its hosts takes new servers"
    return "only its hosts that take new servers can be used"


def _missing_host(hosts: HostTable, rows: Indexes) -> str:
    if not rows.shape[0]:
        return "the named host does not exist"
    if not hosts.is_dedication_open[rows].any():
        return "the named host takes no new servers"
    return "only the named host can be used"
