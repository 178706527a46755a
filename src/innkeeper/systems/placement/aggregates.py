"""The aggregates of providers. The Placement API knows an aggregate only by its uuid."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from innkeeper.domain.ids import Generation, canonical_uuid
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
    """Return the aggregates of a provider, in the order in which it joined them."""
    provider = providers.get(tx, uuid)
    return ProviderAggregates(
        provider.generation, [*provider_details.aggregates_of(tx, provider.id)]
    )


def replace(
    tx: Tx, uuid: str, seen: int | None, requested: Collection[str], now: datetime
) -> ProviderAggregates:
    """Replace the aggregates of a provider with ``requested``, and return them in that order.

    The provider keeps its position in aggregates that it does not leave. The generation advances
    even if nothing changes. It does not advance if ``seen`` is ``None``, because older clients send
    no generation.
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
    """Add a provider to an aggregate and advance its generation, unless it is a member."""
    provider = providers.get(tx, uuid)
    before = provider_details.aggregates_of(tx, provider.id)
    if aggregate not in before:
        providers.advance(tx, provider, now)
        added = _after(before, [aggregate])
        provider_details.change_aggregates(tx, provider.id, add=added, remove=())


def leave(tx: Tx, uuid: str, aggregate: str, now: datetime) -> None:
    """Remove a provider from an aggregate and advance its generation, if it is a member."""
    provider = providers.get(tx, uuid)
    if aggregate in provider_details.aggregates_of(tx, provider.id):
        providers.advance(tx, provider, now)
        provider_details.change_aggregates(tx, provider.id, add={}, remove=[aggregate])


def _after(before: Mapping[str, int], joined: Collection[str]) -> dict[str, int]:
    """Return positions for new aggregates, after the positions of the present aggregates."""
    first = max(before.values(), default=0) + 1
    return {uuid: position for position, uuid in enumerate(joined, first)}
