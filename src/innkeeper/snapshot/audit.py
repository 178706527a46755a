"""Compare two host tables: the one that was kept in step, and one that was read just now.

Rows are compared by their providers, and codes by what they stand for: two tables that came
to the same hosts by different ways number them differently.

May be false, and is not looked at: when agents were heard. That is asked for at its own pace,
and not told by the change feed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import POOLED
from innkeeper.snapshot.pools import PoolTable

Indexes = npt.NDArray[np.intp]
Column = npt.NDArray[Any]
NOWHERE = -1


def differences(mine: HostTable, theirs: HostTable) -> list[str]:
    """Say, host by host, where two tables are not the same; nothing if they are.

    ``mine`` is named first: "3, not 4" means that ``mine`` has 3. A table that contradicts
    itself is told of as well, and then not compared.
    """
    broken = [*_contradictions(mine), *_contradictions(theirs)]
    if broken:
        return broken
    ids, my_rows, their_rows = np.intersect1d(
        mine.provider_ids, theirs.provider_ids, return_indices=True
    )
    told = [
        *_alone(mine, ids, "is only in the first table"),
        *_alone(theirs, ids, "is only in the second table"),
    ]
    pair = _Pair(mine, theirs, my_rows, their_rows)
    told += pair.facts()
    told += pair.amounts()
    told += pair.keyed("trait", mine.traits, theirs.traits)
    told += pair.pools_near()
    told += differences_of_pools(mine.pools, theirs.pools)
    return told


def differences_of_some(
    mine: HostTable, theirs: HostTable, asked: Collection[ProviderId]
) -> list[str]:
    """As :func:`differences`, where the second table was made for these providers only.

    Pools are left out: the second table has those that its few hosts are near to.
    """
    ids, my_rows, their_rows = np.intersect1d(
        mine.provider_ids, theirs.provider_ids, return_indices=True
    )
    known = set(ids.tolist())
    told = [
        f"{mine.names[mine.index_of[each]]} (provider {each}) is only in the first table."
        for each in sorted(asked)
        if each in mine.index_of and each not in known
    ]
    told += _alone(theirs, ids, "is only in the second table")
    pair = _Pair(mine, theirs, my_rows, their_rows)
    return [*told, *pair.facts(), *pair.amounts(), *pair.keyed("trait", mine.traits, theirs.traits)]


def _contradictions(table: HostTable) -> Iterator[str]:
    count = table.host_count
    rows = dict(enumerate(table.provider_ids.tolist()))
    if {provider: index for index, provider in rows.items()} != table.index_of:
        yield "The rows of a table are not where its providers say."
    if {name: index for index, name in enumerate(table.names)} != table.index_by_name:
        yield "The rows of a table are not where its names say."
    lengths = {len(table.names), len(rows), len(table.index_of), table.generations.shape[0]}
    for keyed in (table.free, table.used, table.traits):
        lengths |= {column.shape[0] for column in keyed.values()}
    if lengths != {count}:
        yield f"A table of {count} hosts has columns of {sorted(lengths)} rows."


def differences_of_pools(mine: PoolTable, theirs: PoolTable) -> Iterator[str]:
    """As :func:`differences`, of the pools alone; they are few, and each is one line."""
    for provider_id in sorted(mine.index_of.keys() | theirs.index_of.keys()):
        seen, real = _pool(mine, provider_id), _pool(theirs, provider_id)
        if seen != real:
            yield f"Pool {provider_id}: {seen}, not {real}."


def _pool(table: PoolTable, provider_id: ProviderId) -> dict[str, Any]:
    row = table.index_of.get(provider_id)
    if row is None:
        return {}
    amounts = {
        f"{noun} {name}": float(column[row])
        for noun, keyed in (
            ("free", table.free),
            ("used", table.used),
            ("min_unit", table.min_units),
            ("max_unit", table.max_units),
            ("step_size", table.step_sizes),
        )
        for name, column in keyed.items()
        if column[row]
    }
    return {
        **amounts,
        "uuid": table.uuids[row],
        "generation": table.generation(row),
        "aggregates": sorted(table.aggregates[row]),
    }


def _alone(table: HostTable, shared: Column, told: str) -> Iterator[str]:
    for index in np.flatnonzero(~np.isin(table.provider_ids, shared)):
        yield f"{table.names[index]} (provider {table.provider_ids[index]}) {told}."


def _counted(table: HostTable, row: int) -> tuple[int, int, dict[str, int]]:
    """How many servers there are, how many of them are busy, and whose they are."""
    residents = table.residents.on(ProviderId(int(table.provider_ids[row])))
    return int(table.server_counts[row]), int(table.busy_counts[row]), dict(residents)


def _dedicated(table: HostTable, row: int) -> tuple[Any, ...]:
    """For whom a host is, with all that is known of its pcloud or reservation."""
    code = int(table.dedication_codes[row])
    kind = code if code <= POOLED else table.dedications.facts(code)
    return (kind, bool(table.is_dedication_open[row]), table.pcloud_names[row])


class _Pair:
    """The rows of the hosts that both tables have, in the same order."""

    def __init__(
        self, mine: HostTable, theirs: HostTable, my_rows: Indexes, their_rows: Indexes
    ) -> None:
        self._mine, self._theirs = mine, theirs
        self._my_rows, self._their_rows = my_rows, their_rows

    def facts(self) -> Iterator[str]:
        """Names, generations, states, zones, agents and capabilities."""
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
        yield from self._coded(
            "zone", mine.zone_codes, list(mine.zones), theirs.zone_codes, list(theirs.zones)
        )
        yield from self._coded(
            "agent", mine.agent_codes, mine.agent_ids, theirs.agent_codes, theirs.agent_ids
        )

    def _neighbours(self, row: int, other: int) -> Iterator[str]:
        """The aggregates that a host is in, and whose servers are on it."""
        mine, theirs = self._mine, self._theirs
        told = mine.aggregates.metadata(int(mine.aggregate_codes[row]))
        real = theirs.aggregates.metadata(int(theirs.aggregate_codes[other]))
        if told != real:
            yield f"{mine.names[row]}: is in aggregates {told}, not {real}."
        dedicated, so = _dedicated(mine, row), _dedicated(theirs, other)
        if dedicated != so:
            yield f"{mine.names[row]}: is dedicated to {dedicated}, not {so}."
        if not (mine.knows_servers and theirs.knows_servers):
            return
        counted, there = (_counted(mine, row), _counted(theirs, other))
        if counted != there:
            yield f"{mine.names[row]}: servers: {counted}, not {there}."

    def amounts(self) -> Iterator[str]:
        """What is free and used of each class, and in which pieces it is given out."""
        yield from self.keyed("free", self._mine.free, self._theirs.free)
        yield from self.keyed("used", self._mine.used, self._theirs.used)
        yield from self.keyed("min_unit", self._mine.min_units, self._theirs.min_units)
        yield from self.keyed("max_unit", self._mine.max_units, self._theirs.max_units)
        yield from self.keyed("step_size", self._mine.step_sizes, self._theirs.step_sizes)

    def pools_near(self) -> Iterator[str]:
        """Which pools serve each host; who has no pools need not know who is near to them."""
        if self._mine.knows_memberships and self._theirs.knows_memberships:
            yield from self._unequal("root", self._mine.root_ids, self._theirs.root_ids)
        for row, other in zip(self._my_rows, self._their_rows, strict=True):
            mine = self._mine.pools.serving(int(self._mine.membership_codes[row]))
            theirs = self._theirs.pools.serving(int(self._theirs.membership_codes[other]))
            if mine != theirs:
                name = self._mine.names[row]
                yield f"{name}: is served by {sorted(mine)}, not {sorted(theirs)}."

    def keyed(
        self, noun: str, mine: Mapping[str, Column], theirs: Mapping[str, Column]
    ) -> Iterator[str]:
        """Columns by name; one that a table has not is empty there."""
        nothing = np.zeros(max(self._mine.host_count, self._theirs.host_count))
        for name in sorted(mine.keys() | theirs.keys()):
            yield from self._unequal(
                f"{noun} {name}", mine.get(name, nothing), theirs.get(name, nothing)
            )

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
        """Compare what the codes stand for, through the number that it has in their table."""
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
