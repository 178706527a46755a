"""Searching for candidates as the service does, in one call."""

from __future__ import annotations

from innkeeper.domain.candidates import CandidateQuery, FoundCandidates
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement.candidates import CandidateSearcher


def find(executor: CandidateSearcher, tx: Tx, query: CandidateQuery, seed: int) -> FoundCandidates:
    """Catch up with the store and search, without a deadline."""
    return executor.find(executor.follow(tx, query), query, seed, lambda: True)
