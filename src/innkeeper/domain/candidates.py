"""Queries for allocation candidates, and their results.

Source: the Placement API reference, ``GET /allocation_candidates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from innkeeper.domain.ids import ProviderUuid

UNSUFFIXED = ""
"""The suffix of the unsuffixed group. Different providers may supply the classes of this group."""


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """A group of requested resources, with conditions on their providers.

    Different providers may supply the classes of the unsuffixed group. These providers are in one
    tree, or are sharing providers that serve this tree. The whole amount of one class comes from
    one provider.

    A suffixed group gets all of its resources from one provider. This provider must have at least
    one trait of every set in ``required``. It must also be in at least one aggregate of every set
    in ``member_of``. A suffixed group without ``resources`` claims nothing, but the mappings have
    its provider.
    """

    suffix: str = UNSUFFIXED
    resources: Mapping[str, int] = field(default_factory=dict)
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    in_tree: ProviderUuid | None = None


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """A query for allocation candidates. The ``groups`` have distinct suffixes.

    ``is_isolated`` requires different providers for the suffixed groups. Each set in
    ``same_subtrees`` contains suffixes of groups. One of these groups must have a provider whose
    subtree contains the providers of all the other groups.

    ``root_required`` and ``root_forbidden`` are traits of the root provider. With
    ``takes_one_of_a_tree``, a candidate uses at most one provider of each tree. Clients that do not
    support nested providers need this limit. The search stops after ``limit`` candidates.
    """

    groups: tuple[RequestGroup, ...]
    is_isolated: bool = False
    same_subtrees: tuple[frozenset[str], ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    takes_one_of_a_tree: bool = False
    limit: int | None = None


class Candidate(NamedTuple):
    """One allocation candidate. ``allocations`` has amounts, by provider and then by class.

    ``mappings`` has the providers of each group of the query, by the suffix of the group.
    """

    allocations: dict[ProviderUuid, dict[str, int]]
    mappings: dict[str, list[ProviderUuid]]


class ClassSummary(msgspec.Struct, frozen=True, gc=False):
    """The capacity and the used amount of one resource class of a provider.

    A response has thousands of summaries. Summaries hold no references, so the garbage collector
    can skip them.
    """

    capacity: int
    used: int


class ProviderSummary(msgspec.Struct, frozen=True, gc=False):
    """A provider's resources, traits and position in its tree."""

    resources: dict[str, ClassSummary]
    traits: tuple[str, ...]
    parent_uuid: ProviderUuid | None
    root_uuid: ProviderUuid


@dataclass(frozen=True, slots=True)
class FoundCandidates:
    """The candidates, and a summary of every provider in their trees.

    ``is_cut`` says that an internal bound stopped the search early, so that there may be more
    candidates.
    """

    candidates: list[Candidate]
    summaries: dict[ProviderUuid, ProviderSummary]
    is_cut: bool = False
