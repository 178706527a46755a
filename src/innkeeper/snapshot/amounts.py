"""Define the base class of all tables. A table has one row per provider and one array per fact.

Columns grow by doubling. When a row is removed, the last row moves into its place, so that there
are no gaps.

Always true: every column has ``row_count`` rows, and row *i* is the same provider in all columns.
Every edit of a row is recorded with :meth:`AmountTable.note`. Caches depend on this.

The free amounts in a row may be outdated. Only a claim can prove that they are still free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import BEGINNING, ChangeId, ClassId, Generation, HostIndex, ProviderId

Mask = npt.NDArray[np.bool_]
Amount = npt.NDArray[np.float64]
"""Whole numbers as doubles, exact up to 2**53. Integers would have to be converted for each
comparison and each weight. The conversion would take as long as the operation itself."""

Indexes = npt.NDArray[np.intp]
Rows = slice | Indexes
"""Rows of a table, as a slice or as indexes."""

ROWS_MIN = 64
AMOUNT_MAX = float(2**53)
EDITS_MAX = 4096
"""The maximum number of recorded edits. A cache that lacks more edits is rebuilt."""


@dataclass(frozen=True, slots=True)
class UnitBounds:
    """The strictest unit rules for a class in any row."""

    greatest_min: float
    least_max: float
    has_steps: bool


class AmountTable:
    """The columns of providers, as of the change at ``bookmark`` in the change feed.

    Amounts are keyed by resource class. A row without inventory of a class has zeros. ``edits`` are
    the rows that were edited since ``epoch`` began. A new epoch begins if rows are added, removed
    or moved. Only host tables with ``knows_servers`` have the numbers of servers.
    """

    def __init__(self) -> None:
        self.row_count = 0
        self.bookmark = BEGINNING
        self.edits: list[int] = []
        self.epoch = 0
        self._greatest: dict[str, float] = {}
        self.knows_servers = False
        self.class_ids: dict[str, ClassId] = {}
        self.index_of: dict[ProviderId, HostIndex] = {}
        self.free: dict[str, Amount] = {}
        self.used: dict[str, Amount] = {}
        self.min_units: dict[str, Amount] = {}
        self.max_units: dict[str, Amount] = {}
        self.step_sizes: dict[str, Amount] = {}
        self.traits: dict[str, Mask] = {}
        self._keyed: dict[str, dict[str, Any]] = {
            "free": self.free,
            "used": self.used,
            "min_unit": self.min_units,
            "max_unit": self.max_units,
            "step_size": self.step_sizes,
            "trait": self.traits,
        }
        self._amounts = ["free", "used", "min_unit", "max_unit", "step_size"]
        self._unit_bounds: dict[str, UnitBounds] = {}
        self._rows = 0
        self._full: dict[tuple[str, str], npt.NDArray[Any]] = {}
        self._lists: list[tuple[list[Any], Callable[[], Any]]] = []
        self._add_column("fact", "provider_ids", np.int64)
        self._add_column("fact", "generations", np.int64)

    # These arrays are views. They are renewed when the number of rows changes.
    provider_ids: npt.NDArray[np.int64]
    generations: npt.NDArray[np.int64]

    # -- rows ------------------------------------------------------------------------------

    def add_rows(self, ids: Iterable[ProviderId]) -> None:
        """Add rows at the end for the given providers that have no row yet."""
        fresh = [provider_id for provider_id in ids if provider_id not in self.index_of]
        if not fresh:
            return
        start = self.row_count
        while self._rows < start + len(fresh):
            self._grow()
        self.row_count = start + len(fresh)
        for offset, provider_id in enumerate(fresh):
            self.index_of[provider_id] = HostIndex(start + offset)
        for objects, default in self._lists:
            objects += [default() for _ in fresh]
        self._begin_epoch()
        self._renew_views()
        self.provider_ids[start:] = fresh

    def remove_row(self, provider_id: ProviderId) -> None:
        """Remove a provider's row. The last row moves into its place."""
        index = self.index_of.pop(provider_id, None)
        if index is None:
            return
        last = self.row_count - 1
        if index != last:
            for column in self._own_columns():
                column[index] = column[last]
            for objects, _ in self._lists:
                objects[index] = objects[last]
            moved = ProviderId(int(self._full["fact", "provider_ids"][index]))
            self.index_of[moved] = index
        for objects, _ in self._lists:
            objects.pop()
        for column in self._own_columns():
            column[last] = 0
        self.row_count = last
        self._unit_bounds.clear()
        self._greatest.clear()
        self._begin_epoch()
        self._renew_views()

    def clear_row(self, index: HostIndex) -> None:
        """Reset all amounts and traits of a row."""
        for (kind, _), column in self._full.items():
            if kind != "fact" and column.flags.writeable:
                column[index] = 0
        self._greatest.clear()
        self.note(index)

    def note(self, index: int) -> None:
        """Record that a row was edited."""
        if len(self.edits) == EDITS_MAX:
            self._begin_epoch()
        self.edits.append(index)

    def note_all(self, rows: Indexes) -> None:
        """Record that these rows were edited."""
        if len(self.edits) + rows.shape[0] > EDITS_MAX:
            self._begin_epoch()
        else:
            self.edits += rows.tolist()

    def _begin_epoch(self) -> None:
        self.epoch += 1
        self.edits.clear()

    @property
    def change_id(self) -> ChangeId:
        """The number of the last change that the table shows."""
        return self.bookmark.id

    def generation(self, index: HostIndex) -> Generation:
        """Return the provider's generation in this table."""
        return Generation(int(self.generations[index]))

    def shows(self, provider_id: ProviderId, generation: int) -> bool:
        """Return whether a row shows its provider at this generation or a later one."""
        index = self.index_of.get(provider_id)
        return index is not None and bool(self.generations[index] >= generation)

    def leaves_out(self, provider_id: ProviderId) -> bool:
        """Return whether this table ignores claims on a provider.

        The result is False for every provider, because this table has all providers. A provider
        without a row is new, and its row will be read soon.
        """
        del provider_id
        return False

    def ensure_class(self, name: str) -> None:
        """Add the columns of a resource class if they are missing."""
        if name not in self.free or not self._full["free", name].flags.writeable:
            for kind in self._amounts:
                self._add_column(kind, name, np.float64)

    def ensure_absent_class(self, name: str) -> None:
        """Add columns of zeros that take no memory, for a class that no row has."""
        if name not in self.free:
            for kind in self._amounts:
                self._full[kind, name] = np.broadcast_to(np.float64(0.0), (self._rows,))
                self._view(kind, name)

    def drop_class(self, name: str) -> None:
        """Remove the columns of a class that no row has."""
        for kind in self._amounts:
            self._full.pop((kind, name), None)
            self._keyed[kind].pop(name, None)
        self._unit_bounds.pop(name, None)
        self._greatest.pop(name, None)
        self._begin_epoch()

    def ensure_trait(self, name: str) -> Mask:
        """Return the column of a trait. If the column is missing, add it."""
        if name not in self.traits:
            self._add_column("trait", name, np.bool_)
        return self.traits[name]

    # -- amounts ---------------------------------------------------------------------------

    def set_capacity(self, name: str, at: Any, units: Amount) -> None:
        """Set the capacity of a class in these rows. The rows' usage must still be 0."""
        self.free[name][at] = np.clip(units, 0.0, AMOUNT_MAX)
        self._greatest.pop(name, None)

    def greatest(self, name: str) -> float:
        """Return the largest capacity of a class on one provider, or 1 if all capacities are 0."""
        most = self._greatest.get(name)
        if most is None:
            whole = self.free[name] + self.used[name] if name in self.free else np.zeros(0)
            most = float(whole.max(initial=0.0))
            self._greatest[name] = most
        return most or 1.0

    def set_units(self, name: str, at: Any, units: Sequence[Amount | float]) -> None:
        """Set min_unit, max_unit and step_size of a class in these rows."""
        columns = (self.min_units[name], self.max_units[name], self.step_sizes[name])
        for column, values in zip(columns, units, strict=True):
            column[at] = values
        self._unit_bounds.pop(name, None)

    def take(self, index: HostIndex, amounts: Mapping[str, int]) -> None:
        """Take amounts from a row. :meth:`give_back` is the exact inverse."""
        for name, amount in amounts.items():
            self.free[name][index] -= amount
            self.used[name][index] += amount
        self.note(index)

    def give_back(self, index: HostIndex, amounts: Mapping[str, int]) -> None:
        """Give amounts back to a row. This undoes :meth:`take`."""
        for name, amount in amounts.items():
            self.free[name][index] += amount
            self.used[name][index] -= amount
        self.note(index)

    def follow_claims(
        self, provider_id: ProviderId, seen: int, generation: Generation, taken: Mapping[str, int]
    ) -> bool:
        """Apply claims of another process to a row.

        The claims advanced the provider from the generation ``seen`` to ``generation``. Return
        False if the row does not show the generation ``seen``, or if a column is missing. In these
        cases, the caller must read the row.
        """
        index = self.index_of.get(provider_id)
        if index is None or self.generations[index] != seen:
            return False
        if not taken.keys() <= self.free.keys():
            return False
        self.take(index, taken)
        self.generations[index] = generation
        return True

    def has_left(self, index: HostIndex, amounts: Mapping[str, int]) -> bool:
        """Return whether a row has these amounts free, and the unit rules allow each amount."""
        for name, amount in amounts.items():
            free = self.free.get(name)
            if free is None or free[index] < amount:
                return False
            given = self.gives(name, amount, slice(index, index + 1))
            if given is not None and not given[0]:
                return False
        return True

    def gives(self, name: str, amount: int, rows: Rows) -> Mask | None:
        """Return for each row whether the unit rules allow one allocation of ``amount``.

        Return None if all rows allow it. The rules are those of
        :func:`innkeeper.domain.amounts.gives`.
        """
        bounds = self._unit_bounds.get(name)
        if bounds is None:
            bounds = self._unit_bounds[name] = self._bounds(name)
        if bounds.greatest_min <= amount <= bounds.least_max and not bounds.has_steps:
            # Usually, even the strictest rules allow the amount.
            return None
        least = self.min_units[name][rows]
        given: Mask = (least <= amount) & (self.max_units[name][rows] >= amount)
        if bounds.has_steps:
            # Without inventory, the step is 0, and a division by 0 must be avoided.
            steps = np.maximum(self.step_sizes[name][rows], 1.0)
            given &= (least == amount) | (np.fmod(float(amount), steps) == 0.0)
        return given

    def _bounds(self, name: str) -> UnitBounds:
        is_there = self.max_units[name] > 0
        if not is_there.any():
            return UnitBounds(0.0, np.inf, has_steps=False)
        return UnitBounds(
            float(self.min_units[name][is_there].max()),
            float(self.max_units[name][is_there].min()),
            has_steps=bool((self.step_sizes[name][is_there] > 1).any()),
        )

    # -- all of it -------------------------------------------------------------------------

    def columns(self) -> dict[tuple[str, str], npt.NDArray[Any]]:
        """Return all columns by kind and name, for copies of a table."""
        return {key: column[: self.row_count] for key, column in self._full.items()}

    def set_column(self, kind: str, name: str, values: npt.NDArray[Any]) -> None:
        """Fill a column from a copy. Missing classes and traits are added.

        Raises ``ValueError`` for an unknown column, and for a wrong shape or type.
        """
        if kind in self._amounts:
            self.ensure_class(name)
        elif kind == "trait":
            self.ensure_trait(name)
        column = self._full.get((kind, name))
        if column is None:
            raise ValueError(f"there is no column {kind} {name}")
        if values.shape != (self.row_count,) or values.dtype != column.dtype:
            raise ValueError(f"the column {kind} {name} has a wrong length or type")
        column[: self.row_count] = values
        self._unit_bounds.pop(name, None)
        self._greatest.pop(name, None)
        self._begin_epoch()

    # -- storage ---------------------------------------------------------------------------

    def _add_column(self, kind: str, name: str, dtype: npt.DTypeLike) -> None:
        self._full[kind, name] = np.zeros(self._rows, dtype=dtype)
        self._view(kind, name)

    def _add_list(self, default: Callable[[], Any]) -> list[Any]:
        """Add a list with one object per row. The objects move with the rows."""
        objects: list[Any] = []
        self._lists.append((objects, default))
        return objects

    def _grow(self) -> None:
        # With doubling, n additions of a row copy each row a constant number of times on average.
        self._rows = max(ROWS_MIN, self._rows * 2)
        for key, column in self._full.items():
            if not column.flags.writeable:
                self._full[key] = np.broadcast_to(np.float64(0.0), (self._rows,))
                continue
            wider = np.zeros(self._rows, dtype=column.dtype)
            wider[: column.shape[0]] = column
            self._full[key] = wider

    def _own_columns(self) -> Iterator[npt.NDArray[Any]]:
        """Yield all columns, except the columns of zeros that absent classes share."""
        return (column for column in self._full.values() if column.flags.writeable)

    def _renew_views(self) -> None:
        for kind, name in self._full:
            self._view(kind, name)

    def _view(self, kind: str, name: str) -> None:
        view = self._full[kind, name][: self.row_count]
        if kind == "fact":
            setattr(self, name, view)
        else:
            self._keyed[kind][name] = view
