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
"""The suffix of the group whose classes may come from several providers."""


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """A group of requested resources, with conditions on their providers.

    The classes of the unsuffixed group may come from different providers: providers of one tree,
    and providers that share with this tree. One provider supplies the whole amount of a class.

    A suffixed group gets all of its resources from one provider. This provider must have at least
    one trait of every set in ``required``. It must also be in at least one aggregate of every set
    in ``member_of``. A suffixed group without ``resources`` only adds a provider to the mappings.
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
    ``same_subtrees`` names groups by their suffixes. The provider of one of these groups must be
    the root of a subtree that contains the providers of all these groups.

    ``root_required`` and ``root_forbidden`` are traits of the root provider.
    ``takes_one_of_a_tree`` is for clients without support for trees. If it is set, a candidate uses
    at most one provider of each tree. The search stops after ``limit`` candidates.
    """

    groups: tuple[RequestGroup, ...]
    is_isolated: bool = False
    same_subtrees: tuple[frozenset[str], ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    takes_one_of_a_tree: bool = False
    limit: int | None = None


class Candidate(NamedTuple):
    """One allocation candidate: amounts by provider and class.

    ``mappings`` has the providers of each group, by the group's suffix.
    """

    allocations: dict[ProviderUuid, dict[str, int]]
    mappings: dict[str, list[ProviderUuid]]


class ClassSummary(msgspec.Struct, frozen=True, gc=False):
    """Capacity and usage of one class of a provider.

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
    """The candidates, and a summary of every provider in the trees that they use.

    If ``is_cut`` is set, the search stopped at an internal bound, not at the query's ``limit``. The
    table may then have more candidates.
    """

    candidates: list[Candidate]
    summaries: dict[ProviderUuid, ProviderSummary]
    is_cut: bool = False
