"""Compute the usage of providers and of projects."""

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
"""The value of ``consumer_type`` that adds up the usage of all types."""
UNTYPED = "unknown"
"""The value of ``consumer_type`` for consumers without a type."""


class ProviderUsage(NamedTuple):
    """The usage of a provider by class, at one generation."""

    generation: Generation
    used: Mapping[str, int]


def of_provider(tx: Tx, uuid: str) -> ProviderUsage:
    """Return a provider's usage by class name, for each class in its inventory."""
    provider = providers.get(tx, uuid)
    return ProviderUsage(provider.generation, usages.of_provider(tx, provider.id))


def of_project(
    tx: Tx, project_id: str, user_id: str | None, consumer_type: str | None
) -> dict[str, TypeUsage]:
    """Return a project's usage by consumer type. Types without consumers are omitted.

    ``user_id`` limits the result to the consumers of one user. ``consumer_type`` limits the result
    to one type, and :data:`ALL` adds up all types.
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
