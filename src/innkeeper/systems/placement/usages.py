"""How much is held: of a provider, and by a project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from innkeeper.domain.ids import Generation
from innkeeper.domain.placement import TypeUsage
from innkeeper.store.queries.placement import usages
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import providers

ALL = "all"
"""Stands for the consumers of every type taken together."""
UNTYPED = "unknown"
"""Stands for the consumers that have no type."""


class ProviderUsage(NamedTuple):
    """A provider's generation, and what is held of it by class."""

    generation: Generation
    used: Mapping[str, int]


def of_provider(tx: Tx, uuid: str) -> ProviderUsage:
    """What is held of a provider, for every class it has."""
    provider = providers.get(tx, uuid)
    return ProviderUsage(provider.generation, usages.of_provider(tx, provider.id))


def of_project(
    tx: Tx, project_id: str, user_id: str | None, consumer_type: str | None
) -> dict[str, TypeUsage]:
    """What a project holds, by consumer type; types of which there is nobody are left out.

    ``consumer_type`` narrows it to one type, or to :data:`UNTYPED`; :data:`ALL` adds up.
    """
    found = {
        UNTYPED if kind is None else kind: usage
        for kind, usage in usages.of_project(tx, project_id, user_id).items()
    }
    if consumer_type is None:
        return found
    if consumer_type == ALL:
        return {ALL: _sum(found)} if found else {}
    return {kind: usage for kind, usage in found.items() if kind == consumer_type}


def _sum(found: Mapping[str, TypeUsage]) -> TypeUsage:
    used: dict[str, int] = {}
    for usage in found.values():
        for name, amount in usage.used.items():
            used[name] = used.get(name, 0) + amount
    return TypeUsage(sum(usage.consumers for usage in found.values()), used)
