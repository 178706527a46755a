"""How much is held: of a provider, and by a project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from innkeeper.domain.ids import Generation
from innkeeper.domain.placement import TypeUsage
from innkeeper.store.queries.placement import usages
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import providers

ALL = "all"
"""Stands for consumers of all types together."""
UNTYPED = "unknown"
"""Stands for consumers without a type."""


class ProviderUsage(NamedTuple):
    """What is held of a provider by class, at one generation."""

    generation: Generation
    used: Mapping[str, int]


def of_provider(tx: Tx, uuid: str) -> ProviderUsage:
    """What is held of a provider, for every class it has."""
    provider = providers.get(tx, uuid)
    return ProviderUsage(provider.generation, usages.of_provider(tx, provider.id))


def of_project(
    tx: Tx, project_id: str, user_id: str | None, consumer_type: str | None
) -> dict[str, TypeUsage]:
    """What a project holds, by consumer type; types without consumers are left out.

    ``consumer_type`` selects one type or :data:`UNTYPED`; :data:`ALL` adds all of them up.
    """
    found = {
        UNTYPED if kind is None else kind: usage
        for kind, usage in usages.of_project(tx, project_id, user_id).items()
    }
    if consumer_type is None:
        return found
    if consumer_type == ALL:
        used = Counter[str]()
        for usage in found.values():
            used.update(usage.used)
        consumers = sum(usage.consumers for usage in found.values())
        return {ALL: TypeUsage(consumers, used)} if found else {}
    return {kind: usage for kind, usage in found.items() if kind == consumer_type}
