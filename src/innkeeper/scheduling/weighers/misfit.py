"""Keep plain servers off special hosts.

A host loses weight for each trait that the request neither requires nor prefers. It also loses
weight for each resource class that the request does not use. The loss is the rarity of the trait or
class, which is the share of hosts without it. With fixed scales, the loss is 1, because a trait
that is rare in one zone may be common in another zone.
"""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.pipeline import Weights
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

NAME = "MisfitWeigher"
READS: Reads = ("amounts", "required_traits", "preferred_traits", "has_fixed_scales")
AGGREGATE_KEY = "misfit_weight_multiplier"


def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Weights:
    """For each host, return the negated sum of losses for traits and classes that stay unused."""
    requested = frozenset(spec.amounts) | spec.required_traits | spec.preferred_traits
    return -hosts.kinds().unused(requested, rows, by_rarity=not spec.has_fixed_scales)


def scale(hosts: HostTable, spec: RequestSpec) -> float:
    """Return 1, which is the rarity of a trait or class that hardly any other host has."""
    return 1.0


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Return a cache key, because a change of one host can change the rarities for all hosts."""
    return hosts.kinds().version
