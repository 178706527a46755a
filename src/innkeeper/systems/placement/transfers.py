"""What one consumer holds becomes another's, without anything being asked for anew.

Always true: for each provider and class the consumers of one handover hold together no more
after it than before, so no capacity is checked: what is held may be passed on even where a host
has become too small, or gives out other amounts than it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Amounts, Claim, Consumer, ConsumerClaim
from innkeeper.store.queries.placement import allocations
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import claims


@dataclass(frozen=True, slots=True)
class TransferSide:
    """A consumer that gives or takes."""

    uuid: ConsumerUuid
    project_id: str
    user_id: str
    consumer_type: str


def held(tx: Tx, uuid: ConsumerUuid) -> Amounts:
    """What a consumer holds."""
    return _look(tx, [uuid]).amounts[uuid]


def transfer(tx: Tx, giver: TransferSide, taker: TransferSide, now: datetime) -> None:
    """The taker has from now on what the giver held, and nothing else; the giver nothing.

    Raises :class:`Overtaken` where another writer came between, as does :func:`swap`.
    """
    seen = _look(tx, [giver.uuid, taker.uuid])
    _write(tx, seen, {giver: {}, taker: seen.amounts[giver.uuid]}, now)


def swap(tx: Tx, one: TransferSide, other: TransferSide, now: datetime) -> None:
    """Each has from now on what the other held."""
    seen = _look(tx, [one.uuid, other.uuid])
    wanted = {one: seen.amounts[other.uuid], other: seen.amounts[one.uuid]}
    _write(tx, seen, wanted, now)


def claim_beside(
    tx: Tx, side: TransferSide, amounts: Mapping[ProviderId, Mapping[ClassId, int]], now: datetime
) -> None:
    """Claim for a consumer that holds nothing; raises what :func:`claims.replace` does."""
    claims.replace(tx, [_claim(side, amounts, None)], now)


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


def _write(tx: Tx, seen: _Seen, wanted: Mapping[TransferSide, Amounts], now: datetime) -> None:
    ready = tuple(
        _claim(side, amounts, _generation(seen, side))
        for side, amounts in wanted.items()
        if amounts or side.uuid in seen.consumers
    )
    if not ready:
        return
    (refusal,) = claims.commit_together(tx, [Claim(ready, seen.generations)], now)
    if refusal is not None:
        raise refusal


def _generation(seen: _Seen, side: TransferSide) -> Generation | None:
    known = seen.consumers.get(side.uuid)
    return None if known is None else known.generation


def _claim(side: TransferSide, amounts: Amounts, seen: Generation | None) -> ConsumerClaim:
    return ConsumerClaim(
        uuid=side.uuid,
        project_id=side.project_id,
        user_id=side.user_id,
        amounts=amounts,
        seen=seen,
        consumer_type=side.consumer_type,
    )
