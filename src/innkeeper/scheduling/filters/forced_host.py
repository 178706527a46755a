"""Keep only the host that an administrator forced."""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import named
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Indexes, Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "ForcedHostFilter"
REASON = "the request names another host"
READS: Reads = ("forced_host",)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True for the forced host only, or None if the request forces no host."""
    if spec.forced_host is None:
        return None
    return named(hosts, [spec.forced_host], rows)


def few(hosts: HostTable, spec: RequestSpec) -> Indexes | None:
    """Return the row of the forced host, or no row if the host does not exist.

    Return None if the request forces no host.
    """
    return None if spec.forced_host is None else hosts.rows_named([spec.forced_host])


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Return a text without the host's name, because owners of servers can read the text."""
    return "another host was requested"
