"""Which aggregates providers are in, as the Placement API knows them: by their uuids alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from innkeeper.domain.ids import Generation, canonical_uuid
from innkeeper.store import changes
from innkeeper.store.queries.placement import provider_details
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import generations, providers
from innkeeper.systems.placement.traits import GENERATION_MOVED


class ProviderAggregates(NamedTuple):
    """A provider's generation, and the aggregates it is in."""

    generation: Generation
    aggregates: list[str]


def of_provider(tx: Tx, uuid: str) -> ProviderAggregates:
    """Which aggregates a provider is in, in the order in which it joined them."""
    provider = providers.get(tx, uuid)
    return ProviderAggregates(
        provider.generation, [*provider_details.aggregates_of(tx, provider.id)]
    )


def replace(
    tx: Tx, uuid: str, seen: int | None, wanted: Collection[str], now: datetime
) -> ProviderAggregates:
    """Make ``wanted`` all the aggregates of a provider.

    Those it was in keep their places, and new ones follow. The result is in the order of
    ``wanted``, as the original answers. The generation moves, whether anything changes or not.
    A caller from the time before memberships had one gives ``None``; such a write does not
    move it.
    """
    provider = providers.get(tx, uuid)
    has = dict.fromkeys(canonical_uuid(each) or each for each in wanted)
    generation = provider.generation
    if seen is None:
        changes.add_always_read(tx, [provider.id], now)
    else:
        generations.compare(provider, seen, GENERATION_MOVED)
        generation = generations.advance(tx, provider, now)
    had = provider_details.aggregates_of(tx, provider.id)
    added = _after(had, [each for each in has if each not in had])
    provider_details.change_aggregates(tx, provider.id, add=added, remove=had.keys() - has.keys())
    return ProviderAggregates(generation, [*has])


def join(tx: Tx, uuid: str, aggregate: str, now: datetime) -> None:
    """Put a provider into an aggregate, beside those it is in; its generation moves.

    Nothing is written if it is there already.
    """
    provider = providers.get(tx, uuid)
    had = provider_details.aggregates_of(tx, provider.id)
    if aggregate not in had:
        generations.advance(tx, provider, now)
        added = _after(had, [aggregate])
        provider_details.change_aggregates(tx, provider.id, add=added, remove=())


def leave(tx: Tx, uuid: str, aggregate: str, now: datetime) -> None:
    """Take a provider out of an aggregate; its generation moves.

    Nothing is written if somebody has taken it out already.
    """
    provider = providers.get(tx, uuid)
    if aggregate in provider_details.aggregates_of(tx, provider.id):
        generations.advance(tx, provider, now)
        provider_details.change_aggregates(tx, provider.id, add={}, remove=[aggregate])


def _after(had: Mapping[str, int], joined: Collection[str]) -> dict[str, int]:
    """Positions for new aggregates, behind those that the provider had."""
    first = max(had.values(), default=0) + 1
    return {uuid: position for position, uuid in enumerate(joined, first)}
