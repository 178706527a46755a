"""Keep plain servers off special hosts: what a host has and the request does not use is dear.

Each trait and each resource class that the host has and the request neither requires, prefers
nor takes counts by its rarity, the share of hosts that lack it. What all have costs nothing.
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
    """The sum of the rarities of what would stay unused, as a negative number."""
    asked = frozenset(spec.amounts) | spec.required_traits | spec.preferred_traits
    return -hosts.kinds().unused(asked, rows)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """One thing that hardly any other host has."""
    return 1.0


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Which kinds of hosts there are: one host's trait makes those of all others less rare."""
    return hosts.kinds().version
