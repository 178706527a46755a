"""What a query compares: one value for each row, of whatever kind, or not known.

Numbers are compared with numbers, texts with texts; true and false are only equal or not.
Things of different kinds are not equal, and whether one is before the other is not known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.capabilities import NO_CODE

Truth = tuple[Mask | np.bool_, Mask | np.bool_]
"""Where something holds, and where it does not; where neither is true, it is not known."""
UNKNOWN: Truth = (np.False_, np.False_)

EQUAL, UNEQUAL = "=", "!="
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    EQUAL: operator.eq,
    UNEQUAL: operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Operand:
    """Values by row: ``numbers``, with ``nan`` where the value is none, or ``values[codes]``.

    ``NO_CODE`` is where nothing is known or the value is among the numbers alone. A literal has
    arrays without a dimension. ``find`` is there for names, of which each row has its own: it
    gives the rows with a name, and a name has no order.
    """

    numbers: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    values: Sequence[Any] = ()
    find: Callable[[str], Mask] | None = None

    @property
    def is_known(self) -> Mask:
        """Where there is a value of some kind."""
        known: Mask = ~np.isnan(self.numbers) | (self.codes != NO_CODE)
        return known


_NO_NUMBER = np.array(np.nan)
_NO_TEXT = np.array(NO_CODE, dtype=np.int32)
_FIRST = np.array(0, dtype=np.int32)


def literal(value: Any) -> Operand:
    """A value that stands in the query itself."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(np.array(float(value)))
    return Operand(_NO_NUMBER, _FIRST, (value,))


def number(column: npt.NDArray[np.float64]) -> Operand:
    """A number for each row."""
    return Operand(column, _NO_TEXT)


def coded(codes: npt.NDArray[np.int32], values: Sequence[Any]) -> Operand:
    """Something that is no number for each row."""
    return Operand(_NO_NUMBER, codes, values)


def name(find: Callable[[str], Mask]) -> Operand:
    """A name for each row, and how to find the rows of one."""
    return Operand(_NO_NUMBER, _FIRST, (), find)


def only(operand: Operand) -> Any:
    """The value of the one row that an operand is about; None if there is none."""
    code, plain = int(operand.codes.ravel()[0]), float(operand.numbers.ravel()[0])
    if code != NO_CODE and operand.values:
        return operand.values[code]
    return None if np.isnan(plain) else plain


def truth(operand: Operand | None) -> Truth:
    """Where an operand is true, and where false; what is neither decides nothing."""
    if operand is None or operand.find is not None:
        return UNKNOWN
    return _by_code(operand, lambda v: v is True), _by_code(operand, lambda v: v is False)


def compare(sign: str, one: Operand | None, other: Operand | None) -> Truth:
    """Where a comparison holds, and where its contrary does."""
    if one is None or other is None:
        return UNKNOWN
    if sign == EQUAL:
        return _equal(one, other)
    if sign == UNEQUAL:
        holds, fails = _equal(one, other)
        return fails, holds
    if one.find is not None or other.find is not None:
        return UNKNOWN
    return _ordered(COMPARED[sign], one, other)


def is_among(one: Operand | None, other: Operand | None) -> Truth:
    """Where the first is the second, or an item of it if that is a list."""
    if one is None or other is None:
        return UNKNOWN
    holds, fails = _equal(one, other)
    if not any(isinstance(each, list) for each in other.values):
        return holds, fails
    is_list = _by_code(other, lambda value: isinstance(value, list))
    if one.find is not None or one.codes.ndim or one.numbers.ndim:
        # What varies by row is not looked for in what varies by row.
        return holds & ~is_list, fails & ~is_list
    sought = one.values[0] if one.values else float(one.numbers)
    has = _by_code(other, lambda value: isinstance(value, list) and _has(value, sought))
    return holds | has, fails & ~has


def _has(items: list[Any], sought: Any) -> bool:
    # True is 1 to Python, and no number here.
    return any(isinstance(i, bool) == isinstance(sought, bool) and i == sought for i in items)


def _equal(one: Operand, other: Operand) -> Truth:
    if one.find is not None or other.find is not None:
        return _named(one, other)
    mine, its = _ranks(one, other, with_truths=True)
    holds = (one.numbers == other.numbers) | (mine == its)
    return holds, one.is_known & other.is_known & ~holds


def _named(one: Operand, other: Operand) -> Truth:
    find, word = (one.find, other) if one.find is not None else (other.find, one)
    if find is None or word.find is not None or word.codes.ndim or word.numbers.ndim:
        return UNKNOWN
    if not word.values or not isinstance(word.values[0], str):
        return np.False_, np.True_
    holds = find(word.values[0])
    return holds, ~holds


def _ordered(order: Callable[[Any, Any], Any], one: Operand, other: Operand) -> Truth:
    mine, its = _ranks(one, other, with_truths=False)
    # Comparing with nan is false in every order.
    holds = order(one.numbers, other.numbers) | order(mine, its)
    are_numbers = ~(np.isnan(one.numbers) | np.isnan(other.numbers))
    are_texts = ~(np.isnan(mine) | np.isnan(its))
    return holds, (are_numbers | are_texts) & ~holds


_Ranks = npt.NDArray[np.float64]


def _ranks(one: Operand, other: Operand, *, with_truths: bool) -> tuple[_Ranks, _Ranks]:
    """Texts as numbers in the order of the texts; ``nan`` for what is none."""
    words = {each for each in (*one.values, *other.values) if isinstance(each, str)}
    places: dict[Any, float] = {word: float(n) for n, word in enumerate(sorted(words))}

    def place(value: Any) -> float:
        if isinstance(value, bool):
            return -1.0 - value if with_truths else np.nan
        return places[value] if isinstance(value, str) else np.nan

    return _picked(one, place), _picked(other, place)


def _by_code(operand: Operand, verdict: Callable[[Any], bool]) -> Mask:
    picked: Mask = _picked(operand, lambda value: float(verdict(value))) == 1.0
    return picked


def _picked(operand: Operand, give: Callable[[Any], float]) -> _Ranks:
    # One more at the end: NO_CODE is -1, and picks it.
    by_code = np.array([*map(give, operand.values), np.nan])
    picked: _Ranks = by_code[operand.codes]
    return picked
