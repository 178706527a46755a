"""The zone's answer to a request for places: weights, and entries that only this zone can read.

Always true: nothing is written or claimed, and no host name leaves the zone. The best offer comes
first; equal offers keep the order of the plan.

There are no child zones yet: their offers will be merged here, each sealed again by this zone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from innkeeper.domain.zones import EntryScope, Offer, Planned
from innkeeper.systems.zones.sealing import Sealer

Draw = Callable[[], bytes]
"""Returns an unpredictable nonce."""


def offers(
    planned: Sequence[Planned], scope: EntryScope, sealer: Sealer, draw: Draw, now: datetime
) -> list[Offer]:
    """Seal each planned server for the same scope."""
    made = [
        Offer(each.weight, sealer.seal(each.destination, scope, draw(), now)) for each in planned
    ]
    return sorted(made, key=lambda offer: -offer.weight)
