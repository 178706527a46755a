"""Provide the reported capabilities of hosts as columns.

Always true: a column is up to date when it is returned. Only facts that were replaced since the
last use of the column are read again. Callers must not keep a column for the next decision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.snapshot.vocabulary import NO_CODE, Vocabulary

SPARE_MIN = 64
"""Columns are rebuilt if at least this many values are unused, or this many hosts have new facts.
"""


@dataclass(slots=True, eq=False)
class CapabilityColumn:
    """One capability of all hosts, both as numbers (NaN for other types) and as codes.

    ``values[codes[i]]`` is the value of host *i*. If the host does not have the capability, its
    code is ``NO_CODE``.
    """

    numbers: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    vocabulary: Vocabulary
    _known: dict[object, int] = field(default_factory=dict)

    @property
    def values(self) -> list[Any]:
        """The distinct values by code. The list may include values that no host has any more."""
        return self.vocabulary.values

    def set(self, index: int, fact: Any) -> None:
        """Replace the value of one host. None means that the host has no value."""
        if fact is None:
            self.numbers[index], self.codes[index] = np.nan, NO_CODE
            return
        # Values of different types are distinct: 1, 1.0, True and "1" are four values.
        key: object = fact if isinstance(fact, str) else (type(fact).__name__, repr(fact))
        code = self._known.get(key)
        if code is None:
            code = self._known[key] = len(self.values)
            self.values.append(fact)
        is_number = isinstance(fact, int | float) and not isinstance(fact, bool)
        self.numbers[index] = _as_double(fact) if is_number else np.nan
        self.codes[index] = code


def lookup(facts: Mapping[str, Any], name: str) -> Any:
    """Return a fact by name, or None. The names of nested facts have dots."""
    if name in facts:
        return facts[name]
    found: Any = facts
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def names_of(facts: Mapping[str, Any]) -> set[str]:
    """Return every name for which :func:`lookup` finds a value in these facts."""
    names: set[str] = set()
    inside: list[tuple[str, Mapping[str, Any]]] = [("", facts)]
    while inside:
        path, each = inside.pop()
        for name, fact in each.items():
            names.add(path + name)
            if isinstance(fact, Mapping):
                inside.append((f"{path}{name}.", fact))
    return names


def column_of(facts: list[Any]) -> CapabilityColumn:
    """Return a column with these values, one per host. None means that the host has no value."""
    column = column_of_nothing(len(facts))
    for index, fact in enumerate(facts):
        if fact is not None:
            column.set(index, fact)
    return column


def column_of_nothing(count: int) -> CapabilityColumn:
    """Return a column of ``count`` hosts without values."""
    codes = np.full(count, NO_CODE, dtype=np.int32)
    return CapabilityColumn(np.full(count, np.nan), codes, Vocabulary())


def _as_double(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        # JSON integers may exceed the largest double.
        return math.inf if number > 0 else -math.inf


class CapabilityColumns:
    """The columns of capabilities, built on request. ``facts`` has one entry per row.

    Capabilities change seldom, and most are never used. No column is kept for a name that no agent
    reported, because users' queries may contain any name. ``_replaced`` lists the rows whose facts
    were replaced. For each column, ``_shown`` has the number of entries of ``_replaced`` that the
    column already shows.
    """

    def __init__(self, facts: list[Mapping[str, Any]]) -> None:
        self._facts = facts
        self._names: set[str] = set()
        self._columns: dict[str, CapabilityColumn] = {}
        self._shown: dict[str, int] = {}
        self._replaced: list[int] = []

    def forget(self) -> None:
        """Discard all columns, because rows were added, removed or moved."""
        self._columns.clear()
        self._shown.clear()
        self._replaced.clear()

    def replace(self, index: int, facts: Mapping[str, Any]) -> None:
        """Replace the facts of one host."""
        if self._facts[index] == facts:
            return
        self._facts[index] = facts
        self._names |= names_of(facts)
        if len(self._replaced) >= max(SPARE_MIN, len(self._facts) // 4):
            # Reading this many rows again would take as long as reading all rows.
            self.forget()
        elif self._columns:
            self._replaced.append(index)

    def column(self, name: str) -> CapabilityColumn:
        """Return the column of a capability. Nested facts have dots in their names."""
        if name not in self._names:
            return column_of_nothing(len(self._facts))
        column = self._columns.get(name)
        if column is None or len(column.values) > 2 * len(self._facts) + SPARE_MIN:
            column = column_of([lookup(each, name) for each in self._facts])
            self._columns[name] = column
        elif self._shown[name] < len(self._replaced):
            for index in self._replaced[self._shown[name] :]:
                column.set(index, lookup(self._facts[index], name))
        self._shown[name] = len(self._replaced)
        return column
