"""Keep dedicated hosts for the requests that may use them.

A host is *general* if it is not dedicated. A dedicated host is *open* if it takes new servers. The
*automatic* pclouds of a project are the pclouds that the project's requests may use without naming
a pcloud.

- A request without a pcloud or reservation may use general hosts, and open hosts of its project's
  automatic pclouds.
- A request that names pclouds may use their open hosts, if its project may use the pcloud.
- If the request also names a host, the request may only use the open host of that name in these
  pclouds.
- A request that names a reservation may use the reservation's open hosts, if the lease belongs to
  the request's project.
- A request whose flavor requests the resource class of a reservation's slots may use hosts of the
  freepool. Its claim needs a free slot on the host.
- A request that names a pcloud and a reservation may use no host.
- A request for a preemptible server may use hosts of the freepool that no lease needs for some
  time; see :class:`LeaseFilter`. It may use no other hosts.

Error texts do not reveal the existence of pclouds and reservations that the project may not use.
A reservation that has not begun has the same texts as a reservation that is over.

Faults and explanations name the filter ``LeaseFilter`` for requests with a reservation and for
preemptible servers, and ``PcloudFilter`` for all other requests. Both filters are always enabled.
Neither filter reveals the number of hosts that it removes.

For requests that name neither a pcloud nor a reservation, which are nearly all requests,
:class:`Unnamed` reads only fields with few distinct values. Its result is therefore cached. For
other requests, the filters are evaluated per request, on few hosts.
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
from innkeeper.snapshot.dedications import FREEPOOL, GENERAL, is_one_of, of_reservation

PCLOUD = "PcloudFilter"
LEASE = "LeaseFilter"
NAMES = frozenset({PCLOUD, LEASE})
REASON = "the host is dedicated, or not in the requested pcloud"


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
    """Return True where the host's dedication allows the request to use the host."""
    # At least one of the two filters applies to every request.
    masks = (each.mask(hosts, spec, rows) for each in (PCLOUD_FILTER, LEASE_FILTER))
    allowed: Mask = reduce(np.logical_and, (each for each in masks if each is not None))
    return allowed


class Unnamed:
    """The half of :class:`PcloudFilter` for requests that name no pcloud and no reservation.

    A project's *automatic* pclouds are the pclouds that the project's requests may use without
    naming a pcloud. This filter reads the automatic pclouds instead of the project's id, so that
    requests of many projects share a cached mask.
    """

    NAME = PCLOUD
    REASON = REASON
    READS: Reads = ("names_dedicated", "automatic_pclouds")

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Return True on general hosts, and on open hosts of automatic pclouds.

        General hosts are not dedicated. Open hosts take new servers. Automatic pclouds are the
        pclouds that requests of the project may use without naming a pcloud.
        """
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
    """The half of :class:`PcloudFilter` for requests that name a pcloud (and perhaps a host)."""

    NAME = PCLOUD
    REASON = REASON
    READS: Reads = ("pclouds", "pcloud_host", "project_id")

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Return True on the hosts of the named pclouds, if they take new servers.

        If the request also names a host, return True only on this host.
        """
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
    """The filter for requests without a reservation.

    The filter has two halves: one for requests that name a pcloud, and one for all others.
    """

    NAME = PCLOUD
    REASON = REASON
    HALVES = (Unnamed(), PcloudNamed())
    READS: Reads = (*Unnamed.READS, *PcloudNamed.READS)
    HINTS = ("pcloud", "pcloud_host")

    def __repr__(self) -> str:
        return self.NAME

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Return the mask of the half that applies, or None for requests with a reservation."""
        masks = [half.mask(hosts, spec, rows) for half in self.HALVES]
        return next((each for each in masks if each is not None), None)

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """See :func:`_missing_pcloud`."""
        return _missing_pcloud(hosts, spec)


class LeaseFilter:
    """The filter for requests that may use only leased hosts and hosts of the freepool.

    A preemptible server may use a host of the freepool if no lease needs the host soon. *Soon*
    means within the grace time of the server and the time for its deletion, counted from the
    request.
    """

    NAME = LEASE
    REASON = "the host is not part of the requested reservation, or leases need it"
    READS: Reads = (
        "uses_leased",
        "reservation",
        "takes_slot",
        "is_preemptible",
        "unneeded_until_s",
        "project_id",
    )
    HINTS = ("reservation",)

    def __repr__(self) -> str:
        return self.NAME

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Return True on the leased hosts or freepool hosts that the request may use."""
        if not spec.uses_leased:
            return None
        allowed = _open_to(hosts, _reserved(hosts, spec), rows)
        if spec.is_preemptible:
            allowed &= _unneeded(hosts, spec, rows)
        return allowed

    def few(self, hosts: HostTable, spec: RequestSpec) -> Indexes | None:
        """Return the rows where :meth:`mask` is True, in order."""
        if not spec.uses_leased:
            return None
        rows = _rows_open_to(hosts, _reserved(hosts, spec))
        return rows[_unneeded(hosts, spec, rows)] if spec.is_preemptible else rows

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """Describe the removal without revealing the existence of other projects' reservations."""
        if spec.is_preemptible:
            return "a preemptible server can only use hosts that no lease will need soon"
        if spec.takes_slot:
            return "only the hosts of the requested reservation can be used"
        if not _open_to(hosts, _reserved(hosts, spec), slice(None)).any():
            return "no reservation with the requested id has hosts for this project at present"
        return "only the hosts of the requested reservation can be used"


PCLOUD_FILTER, LEASE_FILTER = PcloudFilter(), LeaseFilter()


def _unneeded(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
    """Return True where no lease needs the host soon."""
    unneeded: Mask = hosts.needed_from_s[rows] > spec.unneeded_until_s
    return unneeded


def _reserved(hosts: HostTable, spec: RequestSpec) -> list[int]:
    if spec.takes_slot or spec.is_preemptible:
        # Slots and preemptible servers are only on hosts of the freepool that no lease holds whole.
        return hosts.dedications.codes([FREEPOOL])
    named = [] if spec.reservation is None else [of_reservation(spec.reservation)]
    return hosts.dedications.usable(named, spec.project_id)


def _open_to(hosts: HostTable, usable: Collection[int], rows: Rows) -> Mask:
    """Return True on hosts that take new servers and whose dedication has one of these codes."""
    if not usable:
        return nowhere(hosts, rows)
    codes = hosts.dedication_codes[rows]
    allowed: Mask = is_one_of(codes, usable) & hosts.is_dedication_open[rows]
    return allowed


def _rows_open_to(hosts: HostTable, usable: Sequence[int]) -> Indexes:
    return hosts.dedications.open_rows(usable, hosts.dedication_codes, hosts.is_dedication_open)


def _missing_pcloud(hosts: HostTable, spec: RequestSpec) -> str:
    """Describe the removal without revealing pclouds that the project may not use.

    The text has no numbers, because only the owner of a pcloud may know the pcloud's size. The
    operator decides whether the number of dedicated hosts is public.
    """
    if not spec.names_dedicated:
        return "the request names no pcloud, and these hosts are dedicated"
    usable = hosts.dedications.usable(spec.pclouds, spec.project_id)
    # A code may still exist after its hosts are gone. The text must not depend on such a code.
    if not usable or not is_one_of(hosts.dedication_codes, usable).any():
        return "no pcloud with the requested id has hosts for this project"
    if spec.pcloud_host is not None:
        return _missing_host(hosts, hosts.rows_called(usable, spec.pcloud_host))
    if not _open_to(hosts, usable, slice(None)).any():
        return "no host of the requested pcloud takes new servers"
    return "only hosts of the requested pcloud that take new servers can be used"


def _missing_host(hosts: HostTable, rows: Indexes) -> str:
    if not rows.shape[0]:
        return "the named host is not in the requested pcloud"
    if not hosts.is_dedication_open[rows].any():
        return "the named host does not take new servers"
    return "only the named host can be used"
