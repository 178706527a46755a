"""Read the calendar of a host table, either completely or for some providers.

Always true afterwards: the requested hosts and their holds match the database as the transaction
sees it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.leases import CalendarHost, HeldWindow
from innkeeper.snapshot.calendar import Calendar
from innkeeper.store.queries.leases import freepool, holds
from innkeeper.store.transactions import Tx

HANDED_OVER = datetime(1970, 1, 1)  # noqa: DTZ001 - naive and in UTC, like all times of the core
"""The time from which a host counts as needed if a lease already has the host or slots on it."""


def load(
    tx: Tx, calendar: Calendar, ids: Collection[ProviderId] | None, leased: Collection[ProviderId]
) -> dict[ProviderId, datetime]:
    """Read the hosts and holds of these providers; ``None`` means all providers.

    ``leased`` has the providers that are dedicated to leases now. All other providers in ``ids``
    have no holds. Returns the time from which each host is needed, by provider. Hosts that are not
    needed are left out.
    """
    if ids is None:
        there, held = freepool.for_calendar(tx, None), holds.windows(tx, None)
        calendar.replace_all(there, held)
        return _needs(there, held)
    concerned = {*leased, *(each for each in ids if each in calendar.index_of)}
    if not concerned:
        return {}
    there = freepool.for_calendar(tx, leased) if leased else []
    held = holds.windows(tx, [each.provider_id for each in there]) if there else []
    calendar.replace(concerned, there, held)
    return _needs(there, held)


def _needs(there: Iterable[CalendarHost], held: Iterable[HeldWindow]) -> dict[ProviderId, datetime]:
    """Return the time from which each host is needed.

    This time is the start of the host's next lease, or the time at which the host leaves the
    freepool.
    """
    found = {each.provider_id: each.leaves_at for each in there if each.leaves_at is not None}
    for each in held:
        # A host that a lease already has is needed at once. A fixed time is used, because requests
        # that waited are evaluated with an older present time.
        needed_at = HANDED_OVER if each.is_active else each.start_at
        known = found.get(each.provider_id, needed_at)
        found[each.provider_id] = min(known, needed_at)
    return found
