"""Capabilities as columns: what agents report of their hosts, ready to be compared at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

NO_CODE = -1


@dataclass(slots=True)
class CapabilityColumn:
    """One capability of all hosts: as numbers (``nan`` where it is none), and as codes.

    ``values[codes[i]]`` is host *i*'s value; a host without the capability has ``NO_CODE``.
    """

    numbers: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    values: list[Any]


def lookup(facts: Mapping[str, Any], name: str) -> Any:
    if name in facts:
        return facts[name]
    found: Any = facts
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def names_of(facts: Mapping[str, Any]) -> set[str]:
    """Every name under which :func:`lookup` finds something in these facts."""
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
    codes = np.full(len(facts), NO_CODE, dtype=np.int32)
    numbers = np.full(len(facts), np.nan)
    values: list[Any] = []
    known: dict[str, int] = {}
    for index, fact in enumerate(facts):
        if fact is None:
            continue
        # By type and text: 1, 1.0, True and "1" are four values.
        key = f"{type(fact).__name__}:{fact!r}"
        code = known.get(key)
        if code is None:
            code = known[key] = len(values)
            values.append(fact)
        codes[index] = code
        if isinstance(fact, int | float) and not isinstance(fact, bool):
            numbers[index] = _as_double(fact)
    return CapabilityColumn(numbers, codes, values)


def column_of_nothing(count: int) -> CapabilityColumn:
    """The column of a capability that none of so many hosts has."""
    codes = np.full(count, NO_CODE, dtype=np.int32)
    return CapabilityColumn(np.full(count, np.nan), codes, [])


def _as_double(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        # A whole number has no largest; a double has, and beyond it is infinity.
        return math.inf if number > 0 else -math.inf
