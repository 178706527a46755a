"""Read allocations by consumer and by provider, and write them for the Placement API.

Always true: writes go through :mod:`innkeeper.systems.placement.claims`, which checks capacity and
advances generations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from innkeeper.domain.errors import ConcurrentUpdate, Invalid, NotFound, Refusal
from innkeeper.domain.ids import (
    ClassId,
    ConsumerUuid,
    Generation,
    ProviderId,
    ProviderUuid,
    canonical_uuid,
)
from innkeeper.domain.placement import Allocation, Consumer, ConsumerClaim
from innkeeper.store.queries.placement import allocations, names, providers
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import claims
from innkeeper.systems.placement import providers as provider_rules

NOBODY = "00000000-0000-0000-0000-000000000000"
"""The project and user that are stored for a new consumer if the client sends neither. Old
microversions of the API have no such fields."""
CONSUMER_TYPE = re.compile(r"[A-Z0-9_]{1,255}")


@dataclass(frozen=True, slots=True)
class AllocationUpdate:
    """The allocations that a client sets for one consumer: amounts by provider and class.

    ``seen`` is the consumer's generation as the client knows it, or ``None`` for a new consumer.
    With ``asks_no_generation``, any generation is accepted. If the project, user or type is
    ``None``, the stored value does not change.
    """

    consumer: str
    resources: Mapping[str, Mapping[str, int]]
    seen: int | None = None
    asks_no_generation: bool = False
    project_id: str | None = None
    user_id: str | None = None
    consumer_type: str | None = None


class ConsumerAllocations(NamedTuple):
    """A consumer and its allocations. ``consumer`` is ``None`` if there are no allocations."""

    consumer: Consumer | None
    allocations: list[Allocation]


class ProviderAllocations(NamedTuple):
    """The allocations and consumers of one provider, at one generation of the provider."""

    generation: Generation
    consumers: Mapping[ConsumerUuid, Consumer]
    allocations: list[Allocation]


def of_consumer(tx: Tx, uuid: str) -> ConsumerAllocations:
    """Return a consumer and its allocations. An unknown consumer has no allocations."""
    canonical = canonical_uuid(uuid)
    if canonical is None:
        return ConsumerAllocations(None, [])
    consumer = ConsumerUuid(canonical)
    found = allocations.consumers_by_uuid(tx, [consumer])
    return ConsumerAllocations(found.get(consumer), allocations.of_consumers(tx, [consumer]))


def of_provider(tx: Tx, uuid: str) -> ProviderAllocations:
    """Return the allocations of a provider. Raises :class:`NotFound`."""
    provider = provider_rules.get(tx, uuid)
    return ProviderAllocations(
        provider.generation,
        allocations.consumers_of_provider(tx, provider.id),
        allocations.of_provider(tx, provider.id),
    )


class AllocationUpdates(NamedTuple):
    """The updates of one request. Either all updates are written, or none."""

    all: Sequence[AllocationUpdate]
    now: datetime


def write(tx: Tx, updates: Sequence[AllocationUpdate], now: datetime) -> None:
    """Write all updates, or none.

    Raises :class:`Invalid` for an unknown provider or class. Raises :class:`ConcurrentUpdate` if a
    consumer's generation is not the expected one. Also raises the errors of :func:`claims.replace`.
    """
    (refusal,) = write_together(tx, [AllocationUpdates(updates, now)])
    if refusal is not None:
        raise refusal


def write_together(tx: Tx, requests: Sequence[AllocationUpdates]) -> list[Refusal | None]:
    """Write the updates of many requests.

    Each request is written completely, or refused completely. The result has one item per request:
    the request's error, or ``None``. The effect is the same as calling :func:`write` for each
    request in turn.
    """
    outcomes: list[Refusal | None] = [None] * len(requests)
    start = 0
    while start < len(requests):
        end = _end_of_turn(requests, start)
        outcomes[start:end] = _write_turn(tx, requests[start:end])
        start = end
    return outcomes


def _end_of_turn(requests: Sequence[AllocationUpdates], start: int) -> int:
    """Return the index of the first request that must wait until earlier requests are written.

    A request must wait if it shares a consumer with an earlier request, which may change the
    consumer's allocations and generation. All later requests must wait too, because their free
    capacity depends on the waiting request.
    """
    named: set[str | None] = set()
    for index in range(start, len(requests)):
        uuids = {canonical_uuid(update.consumer) for update in requests[index].all} - {None}
        if uuids & named:
            return index
        named |= uuids
    return len(requests)


def _write_turn(tx: Tx, requests: Sequence[AllocationUpdates]) -> list[Refusal | None]:
    known = _look_up(tx, [update for each in requests for update in each.all])
    outcomes: list[Refusal | None] = [None] * len(requests)
    ready: dict[int, list[ConsumerClaim]] = {}
    for index, each in enumerate(requests):
        try:
            ready[index] = _claims(known, each.all)
        except Refusal as refusal:
            outcomes[index] = refusal
    if ready:
        now = max(requests[index].now for index in ready)
        refusals = claims.replace_together(tx, list(ready.values()), now)
        for index, refused in zip(ready, refusals, strict=True):
            outcomes[index] = refused
    return outcomes


class _Known(NamedTuple):
    """The consumers, providers and classes that a list of updates names."""

    consumers: Mapping[ConsumerUuid, Consumer]
    provider_ids: Mapping[ProviderUuid, ProviderId]
    class_ids: Mapping[str, ClassId]


def _look_up(tx: Tx, updates: Sequence[AllocationUpdate]) -> _Known:
    consumers = {canonical_uuid(update.consumer) for update in updates}
    named = {canonical_uuid(text) for update in updates for text in update.resources}
    classes = {name for update in updates for each in update.resources.values() for name in each}
    return _Known(
        allocations.consumers_by_uuid(tx, [ConsumerUuid(each) for each in consumers if each]),
        providers.ids_by_uuid(tx, [ProviderUuid(each) for each in named if each]),
        names.class_ids(tx, classes),
    )


def _claims(known: _Known, updates: Sequence[AllocationUpdate]) -> list[ConsumerClaim]:
    """Convert updates into claims, which use row ids instead of uuids and names."""
    uuids = [consumer_uuid(update.consumer) for update in updates]
    if len(set(uuids)) < len(uuids):
        raise Invalid("The same consumer is named twice.")
    for uuid, update in zip(uuids, updates, strict=True):
        _compare(uuid, known.consumers.get(uuid), update)
    provider_ids = _provider_ids(known, updates)
    _demand_classes(known, updates)
    return [
        _claim(uuid, update, known.consumers.get(uuid), provider_ids, known.class_ids)
        for uuid, update in zip(uuids, updates, strict=True)
    ]


def delete(tx: Tx, uuid: str, now: datetime) -> None:
    """Delete all allocations of a consumer. Raises :class:`NotFound` if no allocation exists."""
    canonical = canonical_uuid(uuid)
    freed = canonical is not None and claims.release(tx, [ConsumerUuid(canonical)], now)
    if not freed:
        raise NotFound(f"No allocations for consumer '{uuid}'")


def consumer_uuid(text: str) -> ConsumerUuid:
    """Return a consumer's uuid in canonical form.

    Raises :class:`Invalid` for a text that is no uuid.
    """
    canonical = canonical_uuid(text)
    if canonical is None:
        raise Invalid(f"Malformed consumer_uuid: {text}")
    return ConsumerUuid(canonical)


def _compare(uuid: ConsumerUuid, present: Consumer | None, update: AllocationUpdate) -> None:
    kind = update.consumer_type
    if kind is not None and CONSUMER_TYPE.fullmatch(kind) is None:
        raise Invalid(
            f"Invalid consumer type {kind!r}: expected capital letters, digits and underscores."
        )
    actual = None if present is None else present.generation
    if not update.asks_no_generation and update.seen != actual:
        expected = "null" if actual is None else actual
        raise ConcurrentUpdate(
            f"consumer generation conflict - expected {expected} but got {update.seen} "
            f"for consumer {uuid}"
        )


def _provider_ids(known: _Known, updates: Iterable[AllocationUpdate]) -> dict[str, ProviderId]:
    """Return the row ids of all named providers, by the uuid as the client wrote it."""
    canonical: dict[str, ProviderUuid] = {}
    for update in updates:
        for text in update.resources:
            uuid = canonical_uuid(text)
            if uuid is None:
                raise _no_provider(text)
            canonical[text] = ProviderUuid(uuid)
        if len({canonical[text] for text in update.resources}) < len(update.resources):
            raise Invalid("The same resource provider is named twice.")
    missing = sorted(set(canonical.values()) - known.provider_ids.keys())
    if missing:
        raise _no_provider(", ".join(missing))
    return {text: known.provider_ids[uuid] for text, uuid in canonical.items()}


def _no_provider(text: str) -> Invalid:
    return Invalid(f"Allocation for resource provider '{text}' that does not exist.")


def _demand_classes(known: _Known, updates: Iterable[AllocationUpdate]) -> None:
    for update in updates:
        classes = {name for each in update.resources.values() for name in each}
        missing = sorted(classes - known.class_ids.keys())
        if missing:
            raise Invalid(
                f"Unable to allocate inventory for consumer {update.consumer}: "
                f"No such resource class {', '.join(missing)}."
            )


def _claim(
    uuid: ConsumerUuid,
    update: AllocationUpdate,
    present: Consumer | None,
    provider_ids: Mapping[str, ProviderId],
    class_ids: Mapping[str, ClassId],
) -> ConsumerClaim:
    known = present or Consumer(uuid, NOBODY, NOBODY, Generation(0))
    return ConsumerClaim(
        uuid=uuid,
        project_id=known.project_id if update.project_id is None else update.project_id,
        user_id=known.user_id if update.user_id is None else update.user_id,
        amounts={
            provider_ids[text]: {class_ids[name]: amount for name, amount in each.items()}
            for text, each in update.resources.items()
        },
        seen=None if present is None else present.generation,
        consumer_type=known.consumer_type if update.consumer_type is None else update.consumer_type,
    )
