"""Hosts of a running reservation for the servers that name it, and for nobody else.

Source: the seed about reservations. A request that names a reservation passes the
hosts that are that reservation's at present, if its lease is the project's own. One that is not
there, one of another project, one that has not begun and one that is over are the same to it.

That requests which name none do not come to hosts of leases, nor to those that are kept for
them, is the pclouds' filter's to say, which passes them hosts for everybody.
"""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import nowhere
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Indexes, Mask, Rows
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import of_reservation

NAME = "LeaseFilter"
REASON = "the host is not one of the reservation that was named"
READS: Reads = ("reservation", "project_id")
HINTS = ("reservation",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True on the reservation's hosts, while it runs."""
    if spec.reservation is None:
        return None
    code = _code(hosts, spec)
    if code is None:
        return nowhere(hosts, rows)
    mine: Mask = (hosts.dedication_codes[rows] == code) & hosts.is_dedication_open[rows]
    return mine


def few(hosts: HostTable, spec: RequestSpec) -> Indexes | None:
    """The hosts of the reservation, while it runs."""
    if spec.reservation is None:
        return None
    code = _code(hosts, spec)
    codes = [] if code is None else [code]
    return hosts.dedications.open_rows(codes, hosts.dedication_codes, hosts.is_dedication_open)


def _code(hosts: HostTable, spec: RequestSpec) -> int | None:
    if spec.reservation is None:
        return None
    key = of_reservation(spec.reservation)
    return next(iter(hosts.dedications.usable([key], spec.project_id)), None)


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """What was named; of a reservation that is not the project's, or does not run, nothing."""
    code = _code(hosts, spec)
    if code is None or not ((hosts.dedication_codes == code) & hosts.is_dedication_open).any():
        return "no reservation of that id has hosts for this project at present"
    return "only the hosts of that reservation are meant"
