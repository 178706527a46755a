"""Search for allocation candidates in a table of all providers.

Always true: a search sees every write that was acknowledged before the search began.

A candidate may have lost its free capacity since the search. Only the claim checks the capacity
again.
"""

from __future__ import annotations

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
    """Finds allocation candidates. Only one thread may use a searcher."""

    def __init__(self, placing: Placing) -> None:
        self._placing = placing
        self._follower = ProviderFollower()

    def load(self, tx: Tx) -> None:
        """Read all providers before the first search."""
        self._follower.catch_up(tx)

    def follow(self, tx: Tx, query: CandidateQuery) -> ProviderTable:
        """Return the provider table as ``tx`` sees it. The table is valid until the next call.

        Raises :class:`Invalid` if ``query`` names an unknown class or trait. An unknown aggregate
        or tree is allowed, and matches no provider.
        """
        _must_be_known(tx, query)
        return self._follower.catch_up(tx)

    def find(
        self, table: ProviderTable, query: CandidateQuery, seed: int, goes_on: GoesOn
    ) -> FoundCandidates:
        """Return the candidates that are found before ``goes_on`` stops the search.

        If the setting ``randomize_allocation_candidates`` is on, ``seed`` determines the random
        order. No transaction is needed, because the table does not change during the search.
        """
        shuffle = Shuffler(seed) if self._placing.randomize_allocation_candidates else None
        return finding.find(table, query, self._placing, shuffle, goes_on)


def _must_be_known(tx: Tx, query: CandidateQuery) -> None:
    classes = {name for group in query.groups for name in group.resources}
    missing = sorted(classes - names.class_ids(tx, classes).keys())
    if missing:
        raise Invalid(
            "Invalid resource class in resources parameter: "
            f"No such resource class {', '.join(missing)}."
        )
    traits = set(query.root_required | query.root_forbidden)
    for group in query.groups:
        traits |= group.forbidden.union(*group.required)
    missing = sorted(traits - names.trait_ids(tx, traits).keys())
    if missing:
        raise Invalid(f"No such trait(s): {', '.join(missing)}.")
