"""Read and change the aggregates of providers.

The Placement API knows an aggregate only by its uuid.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from innkeeper.domain.ids import Generation, ProviderId, canonical_uuid
from innkeeper.store import changes
from innkeeper.store.queries.placement import provider_details
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import providers
from innkeeper.systems.placement.traits import GENERATION_MOVED


class ProviderAggregates(NamedTuple):
    """A provider's aggregates at one generation."""

    generation: Generation
    aggregates: list[str]


def of_provider(tx: Tx, uuid: str) -> ProviderAggregates:
    """Return the aggregates of a provider, in the order in which the provider joined them."""
    provider = providers.get(tx, uuid)
    return ProviderAggregates(
        provider.generation, [*provider_details.aggregates_of(tx, provider.id)]
    )


def replace(
    tx: Tx, uuid: str, seen: int | None, requested: Collection[str], now: datetime
) -> ProviderAggregates:
    """Set the aggregates of a provider to ``requested``.

    The returned aggregates are in the order of ``requested``. Later reads list the kept aggregates
    first, in their former order, and then the new aggregates.

    ``seen`` is the provider's generation as the client knows it. If ``seen`` is ``None``, the
    generation is neither checked nor advanced. Otherwise the generation advances even if nothing
    changes. Raises :class:`ConcurrentUpdate` if ``seen`` is not the provider's generation.
    """
    provider = providers.get(tx, uuid)
    after = dict.fromkeys(canonical_uuid(each) or each for each in requested)
    generation = provider.generation
    if seen is None:
        changes.add_always_read(tx, [provider.id], now)
    else:
        providers.demand_generation(provider, seen, GENERATION_MOVED)
        generation = providers.advance(tx, provider, now)
    before = provider_details.aggregates_of(tx, provider.id)
    added = _after(before, [each for each in after if each not in before])
    provider_details.change_aggregates(
        tx, provider.id, add=added, remove=before.keys() - after.keys()
    )
    return ProviderAggregates(generation, [*after])


def join(tx: Tx, uuid: str, aggregate: str, now: datetime) -> None:
    """Add a provider to an aggregate, and advance the provider's generation.

    Do nothing if the provider is a member already.
    """
    provider = providers.get(tx, uuid)
    before = provider_details.aggregates_of(tx, provider.id)
    if aggregate not in before:
        providers.advance(tx, provider, now)
        added = _after(before, [aggregate])
        provider_details.change_aggregates(tx, provider.id, add=added, remove=())


def leave(tx: Tx, uuid: str, aggregate: str, now: datetime) -> None:
    """Remove a provider from an aggregate, and advance the provider's generation.

    Do nothing if the provider is not a member.
    """
    provider = providers.get(tx, uuid)
    if aggregate in provider_details.aggregates_of(tx, provider.id):
        providers.advance(tx, provider, now)
        provider_details.change_aggregates(tx, provider.id, add={}, remove=[aggregate])


def join_all(tx: Tx, ids: Collection[ProviderId], aggregate: str, now: datetime) -> None:
    """Add providers to an aggregate, like :func:`join`, with a fixed number of statements."""
    before = provider_details.aggregates_of_all(tx, ids)
    new = {each: _after(has, [aggregate]) for each, has in before.items() if aggregate not in has}
    providers.advance_all(tx, new, now)
    positions = {each: after[aggregate] for each, after in new.items()}
    provider_details.join_aggregate(tx, aggregate, positions)


def leave_all(tx: Tx, ids: Collection[ProviderId], aggregate: str, now: datetime) -> None:
    """Remove providers from an aggregate, like :func:`leave`, with a fixed number of statements."""
    before = provider_details.aggregates_of_all(tx, ids)
    members = [each for each, has in before.items() if aggregate in has]
    providers.advance_all(tx, members, now)
    provider_details.leave_aggregate(tx, aggregate, members)


def _after(before: Mapping[str, int], joined: Collection[str]) -> dict[str, int]:
    """Return a position for each aggregate in ``joined``, above all positions in ``before``."""
    first = max(before.values(), default=0) + 1
    return {uuid: position for position, uuid in enumerate(joined, first)}
