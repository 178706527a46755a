"""Keep plain servers off special hosts.

A host loses weight for each trait and resource class that the request neither requires, prefers
nor takes: by its rarity, which is the share of hosts without it.
"""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "MisfitWeigher"
READS: Reads = ("amounts", "required_traits", "preferred_traits")
AGGREGATE_KEY = "misfit_weight_multiplier"


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """The sum of the rarities of what would stay unused, negated."""
    requested = frozenset(spec.amounts) | spec.required_traits | spec.preferred_traits
    return -hosts.kinds().unused(requested, rows)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """One trait or class that hardly any other host has."""
    return 1.0


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Changes with the kinds of hosts: one host's trait affects the rarity for all others."""
    return hosts.kinds().version
