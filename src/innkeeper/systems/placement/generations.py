"""The compare-and-update of a single provider, in the words of those who asked for it."""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.errors import ConcurrentUpdate, Overtaken, ProviderChanged
from innkeeper.domain.ids import Generation
from innkeeper.domain.placement import Provider
from innkeeper.store import claims
from innkeeper.store.transactions import Tx


def compare(provider: Provider, seen: int, message: str | None = None) -> None:
    """Raise :class:`ConcurrentUpdate` unless a provider is where the caller saw it."""
    if provider.generation != seen:
        raise ConcurrentUpdate(
            message
            or f"resource provider generation conflict: {provider.uuid} is at "
            f"{provider.generation}, not at {seen}"
        )


def advance(tx: Tx, provider: Provider, now: datetime) -> Generation:
    """Move a provider on from where it was read in this transaction; give where it is then.

    Raises :class:`Overtaken` if somebody has moved it since: what else was written in this
    transaction must not be committed.
    """
    try:
        moved = claims.advance(tx, {provider.id: provider.generation}, now)
    except ProviderChanged as error:
        # Of the host of a pcloud its owner may read this, to whom no provider's uuid is told.
        raise Overtaken(
            "resource provider generation conflict: the provider was concurrently updated"
        ) from error
    return moved[provider.id]
