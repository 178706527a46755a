"""How many times a provider gives out what it has, changed for whom its host is.

Always true: a write that changes something moves the provider's generation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from innkeeper.domain.ids import ConsumerUuid, ProviderId
from innkeeper.store.queries import allocations, belongings, registration
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import generations, providers


class Ratio(NamedTuple):
    """The ratio of one class, and the largest amount in one piece."""

    ratio: float
    max_unit: int


class Present(NamedTuple):
    """As :class:`Ratio`, with what there is in all."""

    ratio: float
    max_unit: int
    total: int


def advance(tx: Tx, uuid: str, now: datetime) -> None:
    """Move a provider's generation: what is true of it is not what somebody has seen."""
    generations.advance(tx, providers.get(tx, uuid), now)


def of_provider(tx: Tx, provider_id: ProviderId) -> dict[str, Present]:
    """What is in force for a provider, by class."""
    return {
        line.class_name: Present(
            line.inventory.allocation_ratio, line.inventory.max_unit, line.inventory.total
        )
        for line in belongings.inventory_lines(tx, provider_id)
    }


def write(tx: Tx, uuid: str, wanted: Mapping[str, Ratio], now: datetime) -> None:
    """Put ratios and largest amounts in force; classes that the provider lacks are left out."""
    provider = providers.get(tx, uuid)
    lines = belongings.inventory_lines(tx, provider.id)
    changed = [
        (provider.id, line.class_id, after)
        for line in lines
        if line.class_name in wanted
        and (
            after := replace(
                line.inventory,
                allocation_ratio=wanted[line.class_name].ratio,
                max_unit=wanted[line.class_name].max_unit,
            )
        )
        != line.inventory
    ]
    if changed:
        generations.advance(tx, provider, now)
        registration.change_inventories(tx, changed, now)


def is_held(tx: Tx, provider_id: ProviderId, but_by: Collection[ConsumerUuid] = ()) -> bool:
    """Whether anybody, but for these, holds anything of a provider, or of those in its tree."""
    return allocations.is_tree_held(tx, provider_id, but_by)
