"""Isolate aggregates by traits.

The hosts of an aggregate with the metadata ``trait:NAME`` = ``required`` take only servers whose
flavor or image requires that trait. The filter keeps scarce hardware free for servers that need
this hardware.
"""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.metadata import Metadata
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "IsolatedAggregatesFilter"
REASON = "the host is reserved for requests that require certain traits"
READS: Reads = ("required_traits", "rules")

SCOPE, REQUIRED = "trait:", "required"


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where the request requires every trait that an aggregate of the host requires."""
    if not (spec.rules.isolates_aggregates_by_trait and hosts.has_aggregates):
        return None
    required = spec.required_traits
    return hosts.by_aggregates(lambda metadata: _kept_for(metadata) <= required, rows)


def _kept_for(metadata: Metadata) -> set[str]:
    pairs = (pair for each in metadata for pair in each.items())
    keys = (key for key, text in pairs if key.startswith(SCOPE) and text.strip() == REQUIRED)
    return {key.removeprefix(SCOPE) for key in keys}


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """List the traits that the request requires."""
    required = ", ".join(sorted(spec.required_traits)) or "none"
    return f"traits that the request requires: {required}"
