"""Compare a host table that was kept up to date with a host table that was just read.

Rows are matched by provider. Codes are compared by their meaning, because tables with different
histories have different codes. Heartbeats of agents are not compared, because the change feed does
not contain them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.calendar import Calendar
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import POOLED
from innkeeper.snapshot.pools import PoolTable

Indexes = npt.NDArray[np.intp]
Column = npt.NDArray[Any]
NOWHERE = -1
KINDS = ("free", "used", "min_unit", "max_unit", "step_size", "trait")


def differences(mine: HostTable, theirs: HostTable) -> list[str]:
    """Describe the differences host by host. An empty list means that the tables are equal.

    "3, not 4" means that ``mine`` has 3 and ``theirs`` has 4. If a table is inconsistent in itself,
    only its inconsistencies are reported.
    """
    broken = [*_contradictions(mine), *_contradictions(theirs)]
    if broken:
        return broken
    ids, my_rows, their_rows = np.intersect1d(
        mine.provider_ids, theirs.provider_ids, return_indices=True
    )
    pair = _Pair(mine, theirs, my_rows, their_rows)
    return [
        *_alone(mine, ids, "is only in the first table"),
        *_alone(theirs, ids, "is only in the second table"),
        *pair.rows(),
        *pair.pools_near(),
        *differences_of_pools(mine.pools, theirs.pools),
        *_differences_of_calendars(mine.calendar, theirs.calendar),
    ]


def differences_of_some(
    mine: HostTable, theirs: HostTable, providers: Collection[ProviderId]
) -> list[str]:
    """Describe the differences for these providers, also in the calendar.

    ``theirs`` has no other hosts.

    Pools are not compared, because ``theirs`` has only the pools that serve its hosts.
    """
    ids, my_rows, their_rows = np.intersect1d(
        mine.provider_ids, theirs.provider_ids, return_indices=True
    )
    known = set(ids.tolist())
    missing = [
        f"{mine.names[mine.index_of[each]]} (provider {each}) is only in the first table."
        for each in sorted(providers)
        if each in mine.index_of and each not in known
    ]
    pair = _Pair(mine, theirs, my_rows, their_rows)
    return [
        *missing,
        *_alone(theirs, ids, "is only in the second table"),
        *pair.rows(),
        *_differences_of_calendars(mine.calendar, theirs.calendar, providers),
    ]


def _contradictions(table: HostTable) -> Iterator[str]:
    count = table.host_count
    rows = dict(enumerate(table.provider_ids.tolist()))
    if {provider: index for index, provider in rows.items()} != table.index_of:
        yield "The index by provider of a table does not match its rows."
    if {name: index for index, name in enumerate(table.names)} != table.index_by_name:
        yield "The index by name of a table does not match its rows."
    lengths = {len(table.names), len(rows), len(table.index_of), table.generations.shape[0]}
    for keyed in (table.free, table.used, table.traits):
        lengths |= {column.shape[0] for column in keyed.values()}
    if lengths != {count}:
        yield f"A table of {count} hosts has columns of {sorted(lengths)} rows."


def differences_of_pools(mine: PoolTable, theirs: PoolTable) -> Iterator[str]:
    """Describe the differences between two pool tables, with one line for each pool."""
    for provider_id in sorted(mine.index_of.keys() | theirs.index_of.keys()):
        seen, real = _pool(mine, provider_id), _pool(theirs, provider_id)
        if seen != real:
            yield f"Pool {provider_id}: {seen}, not {real}."


def _pool(table: PoolTable, provider_id: ProviderId) -> dict[str, Any]:
    row = table.index_of.get(provider_id)
    if row is None:
        return {}
    amounts = {
        f"{kind} {name}": float(column[row])
        for (kind, name), column in table.columns().items()
        if kind not in ("fact", "trait") and column[row]
    }
    return {
        **amounts,
        "uuid": table.uuids[row],
        "generation": table.generation(row),
        "aggregates": sorted(table.aggregates[row]),
    }


def _differences_of_calendars(
    mine: Calendar, theirs: Calendar, providers: Collection[ProviderId] | None = None
) -> Iterator[str]:
    """Describe the differences between two calendars, with one line for each host.

    With ``providers``, only these hosts are compared.
    """
    seen, real = mine.by_host(providers), theirs.by_host(providers)
    for provider_id in sorted(seen.keys() | real.keys()):
        if seen.get(provider_id) != real.get(provider_id):
            yield (
                f"Freepool host with provider {provider_id}: {seen.get(provider_id)}, "
                f"not {real.get(provider_id)}."
            )


def _alone(table: HostTable, shared: Column, text: str) -> Iterator[str]:
    for index in np.flatnonzero(~np.isin(table.provider_ids, shared)):
        yield f"{table.names[index]} (provider {table.provider_ids[index]}) {text}."


def _counted(table: HostTable, row: int) -> tuple[int, int, dict[str, int]]:
    """Return the number of servers, the number of busy servers, and the servers by project."""
    residents = table.residents.on(ProviderId(int(table.provider_ids[row])))
    return int(table.server_counts[row]), int(table.busy_counts[row]), dict(residents)


def _dedicated(table: HostTable, row: int) -> tuple[Any, ...]:
    """Return the dedication of a host, and the facts of its pcloud or reservation."""
    code = int(table.dedication_codes[row])
    kind = code if code <= POOLED else table.dedications.facts(code)
    return (kind, bool(table.is_dedication_open[row]), table.pcloud_names[row])


class _Pair:
    """The rows of the hosts that are in both tables, in the same order for both."""

    def __init__(
        self, mine: HostTable, theirs: HostTable, my_rows: Indexes, their_rows: Indexes
    ) -> None:
        self._mine, self._theirs = mine, theirs
        self._my_rows, self._their_rows = my_rows, their_rows

    def rows(self) -> Iterator[str]:
        """Describe all differences of these hosts, except in their pools."""
        yield from self._facts()
        mine, theirs = self._mine.columns(), self._theirs.columns()
        # A missing column counts as zeros.
        nothing = np.zeros(max(self._mine.host_count, self._theirs.host_count))
        for kind in KINDS:
            for key in sorted(each for each in mine.keys() | theirs.keys() if each[0] == kind):
                yield from self._unequal(
                    " ".join(key), mine.get(key, nothing), theirs.get(key, nothing)
                )

    def _facts(self) -> Iterator[str]:
        mine, theirs = self._mine, self._theirs
        for row, other in zip(self._my_rows, self._their_rows, strict=True):
            if mine.names[row] != theirs.names[other]:
                yield f"{mine.names[row]}: the name is not {theirs.names[other]}."
            if mine.capabilities_of(row) != theirs.capabilities_of(other):
                yield f"{mine.names[row]}: the capabilities differ."
            yield from self._neighbours(int(row), int(other))
        for what in ("ip_versions", "ip_high", "ip_low"):
            yield from self._unequal(what, getattr(mine, what), getattr(theirs, what))
        yield from self._unequal("generation", mine.generations, theirs.generations)
        yield from self._unequal("is open", mine.is_open, theirs.is_open)
        yield from self._unequal("needed from", mine.needed_from_s, theirs.needed_from_s)
        yield from self._coded(
            "zone", mine.zone_codes, list(mine.zones), theirs.zone_codes, list(theirs.zones)
        )
        yield from self._coded(
            "agent", mine.agent_codes, mine.agent_ids, theirs.agent_codes, theirs.agent_ids
        )

    def _neighbours(self, row: int, other: int) -> Iterator[str]:
        """Describe the differences in the aggregates, the dedication and the servers of a host."""
        mine, theirs = self._mine, self._theirs
        metadata = mine.aggregates.metadata(int(mine.aggregate_codes[row]))
        other_metadata = theirs.aggregates.metadata(int(theirs.aggregate_codes[other]))
        if metadata != other_metadata:
            yield f"{mine.names[row]}: is in aggregates {metadata}, not {other_metadata}."
        dedication, other_dedication = _dedicated(mine, row), _dedicated(theirs, other)
        if dedication != other_dedication:
            yield f"{mine.names[row]}: is dedicated to {dedication}, not {other_dedication}."
        if not (mine.knows_servers and theirs.knows_servers):
            return
        servers, other_servers = _counted(mine, row), _counted(theirs, other)
        if servers != other_servers:
            yield f"{mine.names[row]}: servers: {servers}, not {other_servers}."

    def pools_near(self) -> Iterator[str]:
        """Describe the hosts that are served by different pools in the two tables."""
        if self._mine.knows_memberships and self._theirs.knows_memberships:
            yield from self._unequal("root", self._mine.root_ids, self._theirs.root_ids)
        for row, other in zip(self._my_rows, self._their_rows, strict=True):
            mine = self._mine.pools.serving(int(self._mine.membership_codes[row]))
            theirs = self._theirs.pools.serving(int(self._theirs.membership_codes[other]))
            if mine != theirs:
                name = self._mine.names[row]
                yield f"{name}: is served by {sorted(mine)}, not {sorted(theirs)}."

    def _unequal(self, what: str, mine: Column, theirs: Column) -> Iterator[str]:
        my_values, their_values = mine[self._my_rows], theirs[self._their_rows]
        for at in np.flatnonzero(my_values != their_values):
            yield self._line(int(at), what, my_values[at], their_values[at])

    def _coded(
        self,
        what: str,
        mine: Column,
        my_meanings: Sequence[Any],
        theirs: Column,
        their_meanings: Sequence[Any],
    ) -> Iterator[str]:
        """Describe the hosts whose codes have different meanings in the two tables."""
        numbers = {meaning: number for number, meaning in enumerate(their_meanings)}
        translated = np.array(
            [numbers.get(meaning, NOWHERE) for meaning in my_meanings], dtype=np.int64
        )
        my_codes, their_codes = mine[self._my_rows], theirs[self._their_rows]
        differs = translated[my_codes] != their_codes
        for at in np.flatnonzero(differs):
            yield self._line(
                int(at), what, my_meanings[my_codes[at]], their_meanings[their_codes[at]]
            )

    def _line(self, at: int, what: str, mine: Any, theirs: Any) -> str:
        return f"{self._mine.names[self._my_rows[at]]}: {what}: {mine}, not {theirs}."
