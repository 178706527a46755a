"""Define the calendar: columns of the freepool's hosts, and of the holds of reservations on them.

Hosts and holds have separate columns. A hold refers to its host by the host's row. Times are whole
microseconds since 1970, so that equal times are exactly equal.

Always true: the columns show all holds of leases that are not over, as of the last change that the
host table shows. Each change of a hold advances the generation of the host's provider.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.facts import normalized
from innkeeper.domain.ids import ProviderId
from innkeeper.domain.leases import CalendarHost, HeldWindow
from innkeeper.snapshot.amounts import Amount, Indexes, Mask
from innkeeper.snapshot.capabilities import CapabilityColumns

Micros = npt.NDArray[np.int64]
NEVER = np.iinfo(np.int64).max
"""Stands for the leaving time of a host that has none, because it stays in the freepool."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Convert a naive datetime in UTC to microseconds since 1970."""
    return (moment.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def moment_of(at: int) -> datetime:
    """Convert microseconds since 1970 to a naive datetime in UTC."""
    return (_EPOCH + timedelta(microseconds=at)).replace(tzinfo=None)


class Calendar:
    """Columns of the freepool's hosts, and of the holds on them.

    ``hold_amounts`` has the sum of the amounts of a hold's units, by class. Holds of whole hosts
    have no amounts.
    """

    def __init__(self) -> None:
        self.hosts: list[CalendarHost] = []
        self.index_of: dict[ProviderId, int] = {}
        self.provider_ids: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.leaves_at: Micros = np.zeros(0, dtype=np.int64)
        self.capacities: dict[str, Amount] = {}
        self._facts: list[Mapping[str, Any]] = []
        self.facts = CapabilityColumns(self._facts)
        self.hold_rows: Indexes = np.zeros(0, dtype=np.intp)
        self.hold_starts: Micros = np.zeros(0, dtype=np.int64)
        self.hold_ends: Micros = np.zeros(0, dtype=np.int64)
        self.hold_reservations: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.hold_is_whole: Mask = np.zeros(0, dtype=np.bool_)
        self.hold_amounts: dict[str, Amount] = {}

    @property
    def host_count(self) -> int:
        """The number of hosts in the freepool."""
        return len(self.hosts)

    @property
    def hold_count(self) -> int:
        """The number of holds."""
        return int(self.hold_rows.shape[0])

    def has_fact(self, name: str) -> bool:
        """Return whether any host has a fact of this name."""
        return any(name in each.facts for each in self.hosts)

    def replace_all(self, hosts: Sequence[CalendarHost], holds: Sequence[HeldWindow]) -> None:
        """Replace all hosts and holds."""
        self._set_hosts(hosts)
        self._clear_holds(np.ones(self.hold_count, dtype=np.bool_))
        self._add_holds(holds)

    def replace(
        self,
        providers: Collection[ProviderId],
        hosts: Iterable[CalendarHost],
        holds: Sequence[HeldWindow],
    ) -> None:
        """Replace the hosts of these providers, and their holds.

        A provider that is not among the new ``hosts`` has left the freepool.
        """
        fresh = {each.provider_id: each for each in hosts}
        known = [each for each in providers if each in self.index_of]
        if not fresh and not known:
            return
        rows = np.array([self.index_of[each] for each in known], dtype=np.intp)
        self._clear_holds(np.isin(self.hold_rows, rows))
        if set(known) == fresh.keys():
            for provider_id, host in fresh.items():
                self._set_host(self.index_of[provider_id], host)
        else:
            self._change_members(fresh, gone=set(known) - fresh.keys())
        self._add_holds(holds)

    def by_host(
        self, providers: Collection[ProviderId] | None = None
    ) -> dict[ProviderId, tuple[CalendarHost, list[tuple[object, ...]]]]:
        """Return each host with its holds in order, for comparisons with another calendar.

        With ``providers``, only these hosts are returned.
        """
        shown = self.index_of if providers is None else self.index_of.keys() & set(providers)
        rows = sorted(self.index_of[each] for each in shown)
        found: dict[ProviderId, tuple[CalendarHost, list[tuple[object, ...]]]] = {
            self.hosts[row].provider_id: (self.hosts[row], []) for row in rows
        }
        for at in np.flatnonzero(np.isin(self.hold_rows, rows)).tolist():
            row = int(self.hold_rows[at])
            amounts = {name: column[at] for name, column in self.hold_amounts.items() if column[at]}
            found[self.hosts[row].provider_id][1].append(
                (
                    int(self.hold_reservations[at]),
                    int(self.hold_starts[at]),
                    int(self.hold_ends[at]),
                    bool(self.hold_is_whole[at]),
                    sorted(amounts.items()),
                )
            )
        for _, holds in found.values():
            holds.sort(key=lambda hold: hold[:1])
        return found

    def _change_members(
        self, fresh: Mapping[ProviderId, CalendarHost], gone: Collection[ProviderId]
    ) -> None:
        """Add and remove hosts, and renumber the rows of the remaining holds."""
        before = self.provider_ids
        kept = [fresh.get(h.provider_id, h) for h in self.hosts if h.provider_id not in gone]
        added = [each for each in fresh.values() if each.provider_id not in self.index_of]
        self._set_hosts([*kept, *added])
        now_at = np.array([self.index_of.get(ProviderId(int(each)), -1) for each in before])
        if self.hold_count:
            self.hold_rows = now_at.astype(np.intp)[self.hold_rows]

    def _set_hosts(self, hosts: Sequence[CalendarHost]) -> None:
        self.hosts = list(hosts)
        self.index_of = {each.provider_id: row for row, each in enumerate(self.hosts)}
        self.provider_ids = np.array([each.provider_id for each in self.hosts], dtype=np.int64)
        self.leaves_at = np.array([_leaves_at(each) for each in self.hosts], dtype=np.int64)
        names = {name for each in self.hosts for name in each.capacities}
        self.capacities = {
            name: np.array([each.capacities.get(name, 0) for each in self.hosts], dtype=np.float64)
            for name in names
        }
        self._facts[:] = [{} for _ in self.hosts]
        self.facts.forget()
        for row, each in enumerate(self.hosts):
            self.facts.replace(row, normalized(each.facts))

    def _set_host(self, row: int, host: CalendarHost) -> None:
        self.hosts[row] = host
        self.leaves_at[row] = _leaves_at(host)
        for name in host.capacities.keys() - self.capacities.keys():
            self.capacities[name] = np.zeros(self.host_count)
        for name, column in self.capacities.items():
            column[row] = host.capacities.get(name, 0)
        self.facts.replace(row, normalized(host.facts))

    def _clear_holds(self, cleared: Mask) -> None:
        if not cleared.any():
            return
        kept = ~cleared
        self.hold_rows = self.hold_rows[kept]
        self.hold_starts = self.hold_starts[kept]
        self.hold_ends = self.hold_ends[kept]
        self.hold_reservations = self.hold_reservations[kept]
        self.hold_is_whole = self.hold_is_whole[kept]
        self.hold_amounts = {
            name: column[kept] for name, column in self.hold_amounts.items() if column[kept].any()
        }

    def _add_holds(self, holds: Sequence[HeldWindow]) -> None:
        if not holds:
            return
        before = self.hold_count
        rows = [self.index_of[each.provider_id] for each in holds]
        self.hold_rows = np.append(self.hold_rows, np.array(rows, dtype=np.intp))
        self.hold_starts = np.append(self.hold_starts, [micros(each.start_at) for each in holds])
        self.hold_ends = np.append(self.hold_ends, [micros(each.end_at) for each in holds])
        self.hold_reservations = np.append(
            self.hold_reservations, [each.reservation_id for each in holds]
        )
        whole = [each.unit_amounts is None for each in holds]
        self.hold_is_whole = np.append(self.hold_is_whole, np.array(whole, dtype=np.bool_))
        names = {name for each in holds for name in each.unit_amounts or {}}
        for name in names | self.hold_amounts.keys():
            old = self.hold_amounts.get(name, np.zeros(before))
            more = [each.units * (each.unit_amounts or {}).get(name, 0) for each in holds]
            self.hold_amounts[name] = np.append(old, np.array(more, dtype=np.float64))


def _leaves_at(host: CalendarHost) -> int:
    return NEVER if host.leaves_at is None else micros(host.leaves_at)
