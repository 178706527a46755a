"""Move allocations from one consumer to another, or from one provider to another.

Always true: a move between consumers never increases the usage of a provider. So the provider's
capacity is not checked. The move succeeds even if the provider's inventory has shrunk, or if the
unit rules have changed. A move between providers is checked like any claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.errors import CapacityExceeded, Refusal
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Amounts, Claim, Consumer, ConsumerClaim
from innkeeper.store.queries.placement import allocations
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import claims


@dataclass(frozen=True, slots=True)
class TransferSide:
    """One of the two consumers of a transfer."""

    uuid: ConsumerUuid
    project_id: str
    user_id: str
    consumer_type: str | None

    def claim(self, amounts: Amounts, seen: Generation | None) -> ConsumerClaim:
        """Return a claim of ``amounts`` for this consumer.

        ``seen`` is the consumer's generation, or ``None`` if the consumer has no allocations.
        """
        return ConsumerClaim(
            uuid=self.uuid,
            project_id=self.project_id,
            user_id=self.user_id,
            amounts=amounts,
            seen=seen,
            consumer_type=self.consumer_type,
        )


@dataclass(frozen=True, slots=True)
class Relocation:
    """A consumer whose allocations move from one provider to another."""

    uuid: ConsumerUuid
    source: ProviderId
    destination: ProviderId


def held(tx: Tx, uuid: ConsumerUuid) -> Amounts:
    """Return the allocations of a consumer, by provider and class."""
    return _look(tx, [uuid]).amounts[uuid]


def transfer(tx: Tx, giver: TransferSide, taker: TransferSide, now: datetime) -> None:
    """Move all allocations of the giver to the taker.

    The former allocations of the taker are released. Raises :class:`Overtaken` if another writer
    was faster.
    """
    seen = _look(tx, [giver.uuid, taker.uuid])
    _write(tx, seen, {giver: {}, taker: seen.amounts[giver.uuid]}, now)


def swap(tx: Tx, one: TransferSide, other: TransferSide, now: datetime) -> None:
    """Exchange the allocations of two consumers.

    Raises :class:`Overtaken` if another writer was faster.
    """
    seen = _look(tx, [one.uuid, other.uuid])
    amounts_by_side = {one: seen.amounts[other.uuid], other: seen.amounts[one.uuid]}
    _write(tx, seen, amounts_by_side, now)


def claim_beside(tx: Tx, side: TransferSide, amounts: Amounts, now: datetime) -> None:
    """Claim amounts for a consumer that has no allocations yet.

    Raises the errors of :func:`claims.replace`.
    """
    claims.replace(tx, [side.claim(amounts, None)], now)


def relocate_together(
    tx: Tx, relocations: Sequence[Relocation], now: datetime
) -> list[Refusal | None]:
    """Move allocations of consumers from one provider to another.

    Each relocation is checked like any claim. A refused relocation does not affect the others. The
    result has one item per relocation: the error, or ``None``. A consumer that also has allocations
    on other providers is refused, because a pool of the source may not serve the destination.
    """
    seen = _look(tx, [each.uuid for each in relocations])
    outcomes: list[Refusal | None] = [None] * len(relocations)
    ready: dict[int, list[ConsumerClaim]] = {}
    for index, each in enumerate(relocations):
        consumer, amounts = seen.consumers.get(each.uuid), seen.amounts[each.uuid]
        if consumer is None or amounts.keys() != {each.source}:
            outcomes[index] = CapacityExceeded(
                "The consumer has allocations on other providers than its host."
            )
            continue
        side = TransferSide(
            each.uuid, consumer.project_id, consumer.user_id, consumer.consumer_type
        )
        moved = {each.destination: amounts[each.source]}
        ready[index] = [side.claim(moved, consumer.generation)]
    refusals = claims.replace_together(tx, list(ready.values()), now)
    for index, refusal in zip(ready, refusals, strict=True):
        outcomes[index] = refusal
    return outcomes


@dataclass(frozen=True, slots=True)
class _Seen:
    amounts: Mapping[ConsumerUuid, Amounts]
    consumers: Mapping[ConsumerUuid, Consumer]
    generations: Mapping[ProviderId, Generation]


def _look(tx: Tx, uuids: list[ConsumerUuid]) -> _Seen:
    amounts: dict[ConsumerUuid, dict[ProviderId, dict[ClassId, int]]] = {u: {} for u in uuids}
    generations: dict[ProviderId, Generation] = {}
    for row in allocations.of_consumers(tx, uuids):
        of_provider = amounts[row.consumer_uuid].setdefault(row.provider_id, {})
        of_provider[row.class_id] = row.used
        generations[row.provider_id] = row.provider_generation
    return _Seen(amounts, allocations.consumers_by_uuid(tx, uuids), generations)


def _write(
    tx: Tx, seen: _Seen, amounts_by_side: Mapping[TransferSide, Amounts], now: datetime
) -> None:
    ready = tuple(
        side.claim(amounts, None if known is None else known.generation)
        for side, amounts in amounts_by_side.items()
        if (known := seen.consumers.get(side.uuid)) is not None or amounts
    )
    if not ready:
        return
    (refusal,) = claims.commit_together(tx, [Claim(ready, seen.generations)], now)
    if refusal is not None:
        raise refusal
