"""Dedicated hosts for those whom they are for, and for nobody else.

Source: the seed *Whole Host Allocation*, "Using a Pcloud", and the table of cases that follows
from it. A request that names no pcloud passes hosts that are neither in a pcloud nor in a host
flavor's pool; one that names some passes hosts that are in one of them, are enabled there, and
whose pcloud the project may use. A pcloud that is not there and one that the project may not
use are the same to it.

Beyond the seed: a host may be named as well, and a plain request for new servers passes hosts
of those pclouds that take such requests of its project, which are known before.

Nearly all requests name none. What is said of those depends on nothing that is rare, so it is
remembered; the rest is asked each time, of the few that name one.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import among, nowhere
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Indexes, Mask, Rows
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import GENERAL, is_one_of

NAME = "PcloudFilter"
REASON = "the host is dedicated to others, or is not one of the pcloud that was named"
ALL = slice(None)


class Plain:
    """What is said of requests that name no dedicated hosts: nothing that depends on who asks.

    Those of leases are among the hosts that they do not pass.
    """

    NAME = NAME
    REASON = REASON
    READS: Reads = ("names_dedicated", "automatic_pclouds")

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """True on hosts for everybody, and on those of pclouds that take it unasked."""
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
        """See :func:`missing`."""
        return missing(hosts, spec)


class Asked:
    """What is said of requests that name a pcloud, and perhaps a host of it."""

    NAME = NAME
    REASON = REASON
    READS: Reads = ("pclouds", "pcloud_host", "project_id")

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """True where the project may go, and wants to."""
        if not spec.pclouds:
            return None
        usable = hosts.dedications.usable(spec.pclouds, spec.project_id)
        if not usable:
            return nowhere(hosts, rows)
        mine: Mask = (
            is_one_of(hosts.dedication_codes[rows], usable) & hosts.is_dedication_open[rows]
        )
        if spec.pcloud_host is not None:
            mine &= among(hosts, hosts.rows_called(usable, spec.pcloud_host), rows)
        return mine

    def few(self, hosts: HostTable, spec: RequestSpec) -> Indexes | None:
        """The hosts of the pclouds that take new servers, or the one of those that is named."""
        if not spec.pclouds:
            return None
        usable = hosts.dedications.usable(spec.pclouds, spec.project_id)
        if spec.pcloud_host is None:
            return hosts.dedications.open_rows(
                usable, hosts.dedication_codes, hosts.is_dedication_open
            )
        rows = hosts.rows_called(usable, spec.pcloud_host)
        return np.unique(rows[hosts.is_dedication_open[rows]])

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """See :func:`missing`."""
        return missing(hosts, spec)


HALVES = (Plain(), Asked())
READS: Reads = (*Plain.READS, *Asked.READS)
HINTS = ("pcloud", "pcloud_host")


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Both halves together, of which one has something to say, or none.

    The latter is so where a reservation is named, which is another filter's matter.
    """
    said = [half.mask(hosts, spec, rows) for half in HALVES]
    return next((each for each in said if each is not None), None)


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """What there is of what was named; of a pcloud that is not the project's, nothing.

    No numbers: how many hosts are dedicated is the operator's to tell or not, and how many a
    pcloud has is its owner's, while whoever may use it reads this too.
    """
    if not spec.names_dedicated:
        return "no pcloud was named, and these hosts are dedicated"
    usable = hosts.dedications.usable(spec.pclouds, spec.project_id)
    inside: Mask | None = is_one_of(hosts.dedication_codes, usable) if usable else None
    # What is known of a pcloud outlives its hosts, in this process and no other.
    if inside is None or not inside.any():
        return "no pcloud of that id has hosts for this project"
    if spec.pcloud_host is not None:
        return _named_host(hosts, usable, spec.pcloud_host)
    if not (inside & hosts.is_dedication_open).any():
        return "none of its hosts takes new servers"
    return "only its hosts that take new servers are meant"


def _named_host(hosts: HostTable, usable: Collection[int], name: str) -> str:
    rows = hosts.rows_called(usable, name)
    if not rows.shape[0]:
        return "the host that was named is not there"
    if not hosts.is_dedication_open[rows].any():
        return "the host that was named takes no new servers"
    return "only the host that was named is meant"
