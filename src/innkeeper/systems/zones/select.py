"""What a zone answers when it is asked for places: weights, and entries that only it can read.

Always true: nothing is written, and nothing is claimed; no name of a host leaves the zone. The
best offer comes first, and of equal ones the one that was planned first.

There are no child zones yet: what zones below offer will be merged here, each of their entries
in an entry of this zone's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from innkeeper.domain.zones import EntryScope, Offer, Planned
from innkeeper.systems.zones.sealing import Sealer

Draw = Callable[[], bytes]
"""Gives a nonce that nobody can guess."""


def offers(
    planned: Sequence[Planned], scope: EntryScope, sealer: Sealer, draw: Draw, now: datetime
) -> list[Offer]:
    """Seal what was planned here, each entry on the same terms."""
    made = [
        Offer(each.weight, sealer.seal(each.destination, scope, draw(), now)) for each in planned
    ]
    return sorted(made, key=lambda offer: -offer.weight)
