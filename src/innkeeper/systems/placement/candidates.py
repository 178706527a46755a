"""Allocation candidates: the desk that keeps all providers in columns and searches them.

Always true: a search sees every write that was acknowledged before it began.

May be false: that a candidate can still be claimed. Others may be faster; only the claim tells.
"""

from __future__ import annotations

from collections.abc import Iterable

from innkeeper.domain.candidates import CandidateQuery, FoundCandidates
from innkeeper.domain.errors import Invalid
from innkeeper.domain.slices import Placing
from innkeeper.scheduling.candidates import finding
from innkeeper.scheduling.candidates.search import GoesOn
from innkeeper.scheduling.dice import Shuffler
from innkeeper.snapshot.provider_follower import ProviderFollower
from innkeeper.snapshot.providers import ProviderTable
from innkeeper.store.queries.placement import names
from innkeeper.store.transactions import Tx


class CandidateSearcher:
    """Used by one thread, with transactions that only read."""

    def __init__(self, placing: Placing) -> None:
        self._placing = placing
        self._follower = ProviderFollower()

    def load(self, tx: Tx) -> None:
        """Read all providers, so that the first search need not."""
        self._follower.catch_up(tx)

    def follow(self, tx: Tx, query: CandidateQuery) -> ProviderTable:
        """The table as ``tx`` sees it, to be searched; good until the next call.

        Raises :class:`Invalid` for a class or trait that is not there. An aggregate or a tree
        that is not there is no mistake: nothing is in it.
        """
        _must_be_known(tx, query)
        return self._follower.catch_up(tx)

    def find(
        self, table: ProviderTable, query: CandidateQuery, seed: int, goes_on: GoesOn
    ) -> FoundCandidates:
        """Search as long as it ``goes_on``; where the order is to be random, ``seed`` decides.

        Needs no transaction: the table stays as it is meanwhile.
        """
        is_random = self._placing.randomize_allocation_candidates
        shuffle = Shuffler(seed) if is_random else None
        return finding.find(table, query, self._placing, shuffle, goes_on)


def _must_be_known(tx: Tx, query: CandidateQuery) -> None:
    classes = {name for group in query.groups for name in group.resources}
    missing = _missing(classes, names.class_ids(tx, classes))
    if missing:
        raise Invalid(
            "Invalid resource class in resources parameter: "
            f"No such resource class {', '.join(missing)}."
        )
    traits = set(query.root_required | query.root_forbidden)
    for group in query.groups:
        traits |= group.forbidden.union(*group.required)
    missing = _missing(traits, names.trait_ids(tx, traits))
    if missing:
        raise Invalid(f"No such trait(s): {', '.join(missing)}.")


def _missing(wanted: Iterable[str], known: Iterable[str]) -> list[str]:
    return sorted(set(wanted) - set(known))
