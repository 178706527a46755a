"""All that consumers hold of one provider, claimed of another one instead.

Always true: checked like any claim, and each consumer's stands or falls alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.errors import CapacityExceeded, Refusal
from innkeeper.domain.ids import ClassId, ConsumerUuid, ProviderId
from innkeeper.domain.placement import ConsumerClaim
from innkeeper.store.queries.placement import allocations
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import claims


@dataclass(frozen=True, slots=True)
class Relocation:
    """A consumer that is to go from one provider to another."""

    uuid: ConsumerUuid
    source: ProviderId
    destination: ProviderId


def relocate_together(tx: Tx, wanted: Sequence[Relocation], now: datetime) -> list[Refusal | None]:
    """Move what these consumers hold; gives for each ``None``, or why it was not moved.

    What a consumer borrows of a pool is not to be had everywhere, so who holds something of
    other providers than its source is refused.
    """
    uuids = [each.uuid for each in wanted]
    held: dict[ConsumerUuid, dict[ProviderId, dict[ClassId, int]]] = {u: {} for u in uuids}
    for row in allocations.of_consumers(tx, uuids):
        of_provider = held[row.consumer_uuid].setdefault(row.provider_id, {})
        of_provider[row.class_id] = row.used
    known = allocations.consumers_by_uuid(tx, uuids)
    outcomes: list[Refusal | None] = [None] * len(wanted)
    ready: dict[int, list[ConsumerClaim]] = {}
    for index, each in enumerate(wanted):
        consumer = known.get(each.uuid)
        if consumer is None or held[each.uuid].keys() != {each.source}:
            outcomes[index] = CapacityExceeded("It holds more than its host can give.")
            continue
        ready[index] = [
            ConsumerClaim(
                uuid=each.uuid,
                project_id=consumer.project_id,
                user_id=consumer.user_id,
                amounts={each.destination: held[each.uuid][each.source]},
                seen=consumer.generation,
                consumer_type=consumer.consumer_type,
            )
        ]
    refusals = claims.replace_together(tx, list(ready.values()), now)
    for index, refusal in zip(ready, refusals, strict=True):
        outcomes[index] = refusal
    return outcomes
