"""Find, create and delete traits, and set the traits of providers.

Always true: setting a provider's traits advances its generation only if the traits change.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from innkeeper.domain.errors import InUse, Invalid, NotFound
from innkeeper.domain.ids import Generation, TraitId
from innkeeper.domain.placement import NamedThing
from innkeeper.store.queries.placement import names, provider_details
from innkeeper.store.queries.placement.names import NameKind
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import providers
from innkeeper.systems.placement.registration import CUSTOM_NAME

GENERATION_MOVED = (
    "Resource provider's generation already changed. Please update the generation and try again."
)


class ProviderTraits(NamedTuple):
    """A provider's traits at one generation."""

    generation: Generation
    traits: list[NamedThing]


def listing(
    tx: Tx,
    *,
    among: Collection[str] | None = None,
    prefix: str | None = None,
    is_used: bool | None = None,
) -> list[NamedThing]:
    """Return all traits, or the traits that match all given filters.

    ``among`` selects traits by name, and ``prefix`` selects traits by the beginning of the name.
    ``is_used`` selects the traits that at least one provider has, or the traits that no provider
    has.
    """
    return names.listing(tx, NameKind.TRAIT, among=among, prefix=prefix, is_used=is_used)


def get(tx: Tx, name: str) -> NamedThing:
    """Return the trait with this name. Raises :class:`NotFound`."""
    found = names.by_name(tx, NameKind.TRAIT, name)
    if found is None:
        raise NotFound(f"No such trait(s): {name}.")
    return found


def ensure(tx: Tx, name: str, now: datetime) -> tuple[NamedThing, bool]:
    """Get or create a custom trait. Return the trait, and True if this call has created it."""
    if CUSTOM_NAME.fullmatch(name) is None:
        raise Invalid(
            "The trait is invalid. A valid trait must be no longer than 255 characters, start "
            'with the prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
        )
    found = names.by_name(tx, NameKind.TRAIT, name)
    if found is not None:
        return found, False
    names.insert(tx, NameKind.TRAIT, name, now)
    return get(tx, name), True


def delete(tx: Tx, name: str) -> None:
    """Delete a custom trait. Raises :class:`InUse` while a provider has the trait."""
    found = get(tx, name)
    if not found.is_custom:
        raise Invalid(f"Cannot delete standard trait {name}.")
    if names.is_used(tx, NameKind.TRAIT, found.id):
        raise InUse(f"The trait {name} is in use by a resource provider.", code="undefined_code")
    names.delete(tx, NameKind.TRAIT, found.id)


def of_provider(tx: Tx, uuid: str) -> ProviderTraits:
    """Return the traits of a provider. Raises :class:`NotFound`."""
    provider = providers.get(tx, uuid)
    return ProviderTraits(provider.generation, provider_details.traits_of(tx, provider.id))


def replace(
    tx: Tx, uuid: str, seen: int | None, requested: Collection[str], now: datetime
) -> ProviderTraits:
    """Replace the traits of a provider with ``requested``.

    Raises :class:`ConcurrentUpdate` if ``seen`` is not the provider's generation. If ``seen`` is
    ``None``, the generation is not checked. Raises :class:`Invalid` for an unknown trait.
    """
    provider = providers.get(tx, uuid)
    if seen is not None:
        providers.demand_generation(provider, seen, GENERATION_MOVED)
    rows = names.listing(tx, NameKind.TRAIT, among=requested) if requested else []
    missing = sorted(set(requested) - {row.name for row in rows})
    if missing:
        raise Invalid(f"No such trait {', '.join(missing)}")
    before = {TraitId(row.id) for row in provider_details.traits_of(tx, provider.id)}
    after = {TraitId(row.id) for row in rows}
    if before == after:
        return ProviderTraits(provider.generation, rows)
    generation = providers.advance(tx, provider, now)
    provider_details.change_traits(tx, provider.id, add=after - before, remove=before - after)
    return ProviderTraits(generation, rows)
