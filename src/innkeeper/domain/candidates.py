"""Words of allocation candidates: what a client asks of a tree, and what it may claim.

Source: the Placement API reference, ``GET /allocation_candidates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from innkeeper.domain.ids import ProviderUuid

UNSUFFIXED = ""
"""The suffix of the one group whose classes may come from several providers."""


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """What is asked for together.

    The unsuffixed group's classes may come from different providers of one tree, and of those
    that share with it; each class as a whole comes from one of them. A suffixed group comes
    from one provider. Conditions read as in :class:`innkeeper.domain.placement.ProviderQuery`:
    of every set in ``required`` one trait, of every set in ``member_of`` one aggregate.
    Without ``resources`` a (suffixed) group only finds a provider for the mappings.
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
    """All that one search is about; ``groups`` have different suffixes.

    ``is_isolated`` keeps the suffixed groups on different providers. Each set in
    ``same_subtrees`` names suffixes whose providers must all be below (or be) one of them.
    ``root_required`` and ``root_forbidden`` are traits of the root that the candidate hangs
    on. ``takes_one_of_a_tree`` is for clients who know nothing of trees: no two providers of
    the same one. ``limit`` ends the search, not only the answer.
    """

    groups: tuple[RequestGroup, ...]
    is_isolated: bool = False
    same_subtrees: tuple[frozenset[str], ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    takes_one_of_a_tree: bool = False
    limit: int | None = None


class Candidate(NamedTuple):
    """One way to serve the request: amounts by provider and class, ready to be claimed.

    ``mappings`` names the providers that serve each group, by the group's suffix.
    """

    allocations: dict[ProviderUuid, dict[str, int]]
    mappings: dict[str, list[ProviderUuid]]


class ClassSummary(msgspec.Struct, frozen=True, gc=False):
    """How much a provider can give of a class in all, and how much is held of that.

    An answer holds thousands; the garbage collector need not look at them, since nothing in
    them leads anywhere.
    """

    capacity: int
    used: int


class ProviderSummary(msgspec.Struct, frozen=True, gc=False):
    """What a provider is and has, for a client who chooses between candidates."""

    resources: dict[str, ClassSummary]
    traits: tuple[str, ...]
    parent_uuid: ProviderUuid | None
    root_uuid: ProviderUuid


@dataclass(frozen=True, slots=True)
class FoundCandidates:
    """The answer: candidates, and every provider of each tree that one of them takes from.

    ``is_cut`` tells that the search ended at one of its own bounds (not at the query's
    ``limit``), so that there may be more.
    """

    candidates: list[Candidate]
    summaries: dict[ProviderUuid, ProviderSummary]
    is_cut: bool = False
