"""Which aggregates providers are in, as the Placement API knows them: by their uuids alone."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from innkeeper.domain.ids import Generation, canonical_uuid
from innkeeper.store import changes
from innkeeper.store.queries.placement import belongings
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import generations, providers
from innkeeper.systems.placement.traits import GENERATION_MOVED


class Memberships(NamedTuple):
    """A provider's generation, and the aggregates it is in."""

    generation: Generation
    aggregates: list[str]


def of_provider(tx: Tx, uuid: str) -> Memberships:
    """Which aggregates a provider is in."""
    provider = providers.get(tx, uuid)
    return Memberships(provider.generation, belongings.aggregates_of(tx, provider.id))


def replace(
    tx: Tx, uuid: str, seen: int | None, wanted: Collection[str], now: datetime
) -> Memberships:
    """Make ``wanted`` all the aggregates of a provider.

    The generation moves, whether anything changes or not. A caller from the time before
    memberships had one gives ``None``; his write does not move it.
    """
    provider = providers.get(tx, uuid)
    has = {canonical_uuid(each) or each for each in wanted}
    generation = provider.generation
    if seen is None:
        changes.add_always_read(tx, [provider.id], now)
    else:
        generations.compare(provider, seen, GENERATION_MOVED)
        generation = generations.advance(tx, provider, now)
    had = set(belongings.aggregates_of(tx, provider.id))
    belongings.change_aggregates(tx, provider.id, add=has - had, remove=had - has)
    return Memberships(generation, sorted(has))


def join(tx: Tx, uuid: str, aggregate: str, now: datetime) -> None:
    """Put a provider into an aggregate, beside those it is in; its generation moves.

    Nothing is written if it is there already.
    """
    provider = providers.get(tx, uuid)
    if aggregate not in belongings.aggregates_of(tx, provider.id):
        generations.advance(tx, provider, now)
        belongings.change_aggregates(tx, provider.id, add={aggregate}, remove=set())


def leave(tx: Tx, uuid: str, aggregate: str, now: datetime) -> None:
    """Take a provider out of an aggregate; its generation moves.

    Nothing is written if somebody has taken it out already.
    """
    provider = providers.get(tx, uuid)
    if aggregate in belongings.aggregates_of(tx, provider.id):
        generations.advance(tx, provider, now)
        belongings.change_aggregates(tx, provider.id, add=set(), remove={aggregate})
