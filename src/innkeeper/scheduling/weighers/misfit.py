"""Keep plain servers off special hosts.

A host loses weight for each of its traits and resource classes that the request neither requires,
prefers nor takes. The loss is the rarity of the trait or class: the share of hosts without it.
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
    """Return the sum of the rarities of what would stay unused, negated."""
    requested = frozenset(spec.amounts) | spec.required_traits | spec.preferred_traits
    return -hosts.kinds().unused(requested, rows)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """Return 1: a trait or class that hardly any other host has weighs 1."""
    return 1.0


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Return the version of the kinds: one host's trait changes the rarity for all hosts."""
    return hosts.kinds().version
