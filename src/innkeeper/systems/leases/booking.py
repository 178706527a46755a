"""Choose hosts on the calendar for a lease, and claim them.

The calendar is a table in memory of the freepool's hosts and their reservations. A hold is the part
of a host that a lease has reserved for a period.

Always true: before a writer adds holds, it advances the generation of each chosen host, and reads
the holds on these hosts again from the database. So two leases never hold the same capacity, even
if the calendar of this process is outdated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from innkeeper.domain.errors import Overtaken
from innkeeper.domain.ids import ProviderId
from innkeeper.domain.leases import ChosenHost, Demand, Window
from innkeeper.scheduling.leases import choosing, requirements, timeline
from innkeeper.scheduling.leases.choosing import ChosenUnits, Constraints
from innkeeper.scheduling.leases.lacks import Lack
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.calendar import Calendar, micros
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import FREEPOOL
from innkeeper.snapshot.loader import seconds
from innkeeper.store.queries.leases import freepool, holds
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.placement import providers

_MICROSECOND = timedelta(microseconds=1)


def usable(table: HostTable, context: LeaseContext) -> Mask:
    """Return for each host of the freepool whether it is enabled and its agent is up."""
    rows = table.calendar_rows()
    heard = table.agent_seen_s[table.agent_codes[rows]] >= seconds(context.seen_since)
    able: Mask = (rows >= 0) & table.is_open[rows] & heard
    return able


def empty(table: HostTable) -> Mask:
    """Return for each host of the freepool whether it has no active reservation or allocation."""
    rows = table.calendar_rows()
    codes = table.dedications.codes([FREEPOOL])
    free: Mask = np.isin(table.dedication_codes[rows], codes)
    for used in table.used.values():
        # If no host has a class, its column is a read-only zero column. There may be thousands of
        # such columns.
        if used.flags.writeable:
            free &= used[rows] == 0
    return free


@dataclass(frozen=True, slots=True)
class Changed:
    """The present state of a lease that is being changed.

    ``reservations`` are row ids. The hosts and slots of these reservations count as free. ``kept``
    has the present units of each demand, by row of the calendar (the freepool's hosts). A unit is a
    whole host or a slot. If ``must_keep`` is True for a demand, all present units of the demand are
    kept. The rows in ``avoided`` are not chosen.
    """

    reservations: Collection[int] = ()
    kept: Sequence[Mapping[int, int]] = ()
    must_keep: Sequence[bool] = ()
    avoided: Collection[int] = ()


NOT_CHANGED = Changed()


def look(
    table: HostTable,
    demands: Sequence[Demand],
    window: Window,
    context: LeaseContext,
    changed: Changed = NOT_CHANGED,
) -> ChosenUnits | Lack:
    """Choose units (hosts or slots) for all demands of a lease, without claiming them.

    Raises :class:`Invalid` for a requirement that names an unknown fact.
    """
    calendar = table.calendar
    for demand in demands:
        requirements.check_all(demand.requirements, calendar)
    able = usable(table, context)
    able[list(changed.avoided)] = False
    return choosing.choose(
        calendar,
        demands,
        micros(window.start),
        micros(window.end),
        usable=able,
        preferred=empty(table),
        seed=context.seed,
        constraints=Constraints(
            context.cleaning // _MICROSECOND, changed.reservations, changed.kept, changed.must_keep
        ),
    )


def are_free(
    table: HostTable,
    rows: Mapping[int, bool],
    window: Window,
    context: LeaseContext,
    ignored: Collection[int],
) -> bool:
    """Return True if a lease can keep its hosts in a window.

    The hosts must stay in the freepool, and no other lease may need them. The keys of ``rows`` are
    rows of the calendar (the freepool's hosts). A value is True if the lease holds the whole host.
    The hosts and slots of the reservations in ``ignored`` count as free.
    """
    calendar, cleaning = table.calendar, context.cleaning // _MICROSECOND
    start, end = micros(window.start), micros(window.end)
    use = timeline.use(calendar, start - cleaning, end + cleaning, ignored=ignored, classes=())
    return not any(
        use.is_whole[row] or (is_whole and use.is_shared[row]) or calendar.leaves_at[row] < end
        for row, is_whole in rows.items()
    )


def choices(calendar: Calendar, chosen: ChosenUnits) -> list[list[ChosenHost]]:
    """Return for each demand the chosen hosts, each with its number of units."""
    found: list[list[ChosenHost]] = []
    for pairs in chosen.by_demand:
        hosts = [(calendar.hosts[row], units) for row, units in pairs.tolist()]
        found.append(
            [
                ChosenHost(host.host_id, host.provider_id, host.provider_uuid, units)
                for host, units in hosts
            ]
        )
    return found


def claim(
    tx: Tx,
    demands: Sequence[Demand],
    chosen: Sequence[Sequence[ChosenHost]],
    window: Window,
    context: LeaseContext,
    ignored: Collection[int] = (),
) -> None:
    """Advance the generations of chosen hosts, and check in the database that the units fit.

    A unit is a whole host or a slot. Raises :class:`Overtaken` if the units no longer fit, because
    another writer was faster. Each writer advances the generation before the check. So the second
    writer waits for the first writer, and then sees what the first writer has reserved.
    """
    ids = sorted({each.provider_id for some in chosen for each in some})
    if not ids:
        return
    providers.advance_all(tx, ids, context.now)
    stored = Calendar()
    every = holds.windows(tx, ids)
    own = {each.provider_id for each in every if each.reservation_id in ignored}
    held = [each for each in every if each.reservation_id not in ignored]
    stored.replace_all(freepool.for_calendar(tx, ids), held)
    if len(stored.hosts) < len(ids) or not _suit(stored, demands, chosen, window, own):
        raise Overtaken("A chosen host was changed or left the freepool after it was chosen.")
    # The times are compared as integers, because a datetime cannot represent the last date plus the
    # cleaning time.
    cleaning = context.cleaning // _MICROSECOND
    use = timeline.use(stored, micros(window.start) - cleaning, micros(window.end) + cleaning)
    if not _fits(stored, use, demands, chosen):
        raise Overtaken("Another lease took a chosen host after it was chosen.")


def _suit(
    stored: Calendar,
    demands: Sequence[Demand],
    chosen: Sequence[Sequence[ChosenHost]],
    window: Window,
    own: Collection[ProviderId],
) -> bool:
    """Return True if all hosts stay in the freepool, and new hosts satisfy the requirements."""
    if (stored.leaves_at < micros(window.end)).any():
        return False
    for demand, some in zip(demands, chosen, strict=True):
        if not demand.requirements:
            continue
        suitable = requirements.satisfied(demand.requirements, stored)
        new = [stored.index_of[each.provider_id] for each in some if each.provider_id not in own]
        if not suitable[new].all():
            return False
    return True


def _fits(
    stored: Calendar,
    use: timeline.Use,
    demands: Sequence[Demand],
    chosen: Sequence[Sequence[ChosenHost]],
) -> bool:
    taken = use.is_whole.copy()
    is_shared = use.is_shared.copy()
    more: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}
    for demand, some in zip(demands, chosen, strict=True):
        for each in some:
            row = stored.index_of[each.provider_id]
            if taken[row] or (demand.is_whole and is_shared[row]):
                return False
            taken[row] |= demand.is_whole
            is_shared[row] |= not demand.is_whole
            for name, amount in (demand.unit_amounts or {}).items():
                column = more.setdefault(name, np.zeros(stored.host_count))
                column[row] += each.units * amount
    nothing = np.zeros(stored.host_count)
    return all(
        bool(
            (
                (column == 0)
                | (use.peaks.get(name, nothing) + column <= stored.capacities.get(name, nothing))
            ).all()
        )
        for name, column in more.items()
    )
