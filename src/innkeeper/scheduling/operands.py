"""Compare operands of queries.

For each row, an operand has a value of any type, or no known value. Numbers are compared with
numbers, and texts with texts. Booleans have no order. Values of different types are not equal, and
their order is unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.vocabulary import FALSE, NO_CODE, TRUE, Ranks, Vocabulary, in_one_order

Truth = tuple[Mask | np.bool_, Mask | np.bool_]
"""Two masks for a condition: where it is true, and where it is false. Everywhere else, it is
unknown."""
UNKNOWN: Truth = (np.False_, np.False_)

EQUAL, UNEQUAL = "=", "!="
NOTHING = Vocabulary()
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
    """A value for each row, either a number in ``numbers`` or any value as ``values[codes]``.

    ``numbers`` is ``nan`` where the value is not a number. A code is ``NO_CODE`` where the value is
    unknown, or is only in ``numbers``. The arrays of a literal have no dimension. An operand of
    host names has ``find`` instead of values. ``find`` returns the mask of the rows with a given
    name.
    """

    numbers: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    vocabulary: Vocabulary = NOTHING
    find: Callable[[str], Mask] | None = None

    @property
    def values(self) -> Sequence[Any]:
        """The values by code."""
        return self.vocabulary.values

    @property
    def is_known(self) -> Mask:
        """True where the value is known."""
        known: Mask = ~np.isnan(self.numbers) | (self.codes != NO_CODE)
        return known


_NO_NUMBER = np.array(np.nan)
_NO_TEXT = np.array(NO_CODE, dtype=np.int32)
_FIRST = np.array(0, dtype=np.int32)


def literal(value: Any) -> Operand:
    """Make an operand from a literal in the query."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(np.array(float(value)))
    return Operand(_NO_NUMBER, _FIRST, Vocabulary((value,)))


def number(column: npt.NDArray[np.float64]) -> Operand:
    """Make an operand with a number for each row."""
    return Operand(column, _NO_TEXT)


def coded(codes: npt.NDArray[np.int32], values: Sequence[Any]) -> Operand:
    """Make an operand with the value ``values[codes[i]]`` for row *i*."""
    return Operand(_NO_NUMBER, codes, Vocabulary(values))


def name(find: Callable[[str], Mask]) -> Operand:
    """Make an operand of unique names. ``find`` returns the mask of the row with a given name."""
    return Operand(_NO_NUMBER, _FIRST, find=find)


def only(operand: Operand) -> Any:
    """Return the value of an operand with one row, or None if the value is unknown."""
    code, plain = int(operand.codes.ravel()[0]), float(operand.numbers.ravel()[0])
    if code != NO_CODE and operand.values:
        return operand.values[code]
    return None if np.isnan(plain) else plain


def truth(operand: Operand | None) -> Truth:
    """Return where an operand is true, and where it is false. Other values count as unknown."""
    if operand is None or operand.find is not None:
        return UNKNOWN
    ranks = operand.vocabulary.ranks()[operand.codes]
    return ranks == TRUE, ranks == FALSE


def compare(sign: str, one: Operand | None, other: Operand | None) -> Truth:
    """Return where the comparison of two operands is true, and where it is false."""
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
    """Return where ``one`` equals ``other`` or is in the list ``other``, and where it does not."""
    if one is None or other is None:
        return UNKNOWN
    holds, fails = _equal(one, other)
    are_lists = other.vocabulary.are_lists()
    if are_lists is None:
        return holds, fails
    if one.find is not None or one.codes.ndim or one.numbers.ndim:
        # Lists can only be searched for one value that is the same in all rows.
        is_list = are_lists[other.codes]
        return holds & ~is_list, fails & ~is_list
    sought = one.values[0] if one.values else float(one.numbers)
    has = other.vocabulary.having(sought)[other.codes]
    return holds | has, fails & ~has


def _equal(one: Operand, other: Operand) -> Truth:
    if one.find is not None or other.find is not None:
        return _named(one, other)
    mine, its = _ranks(one, other)
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
    mine, its = (np.where(ranks > FALSE, ranks, np.nan) for ranks in _ranks(one, other))
    # Comparisons with nan are False.
    holds = order(one.numbers, other.numbers) | order(mine, its)
    are_numbers = ~(np.isnan(one.numbers) | np.isnan(other.numbers))
    are_texts = ~(np.isnan(mine) | np.isnan(its))
    return holds, (are_numbers | are_texts) & ~holds


def _ranks(one: Operand, other: Operand) -> tuple[Ranks, Ranks]:
    """Return the ranks of the texts and booleans of both operands by row. Other types have NaN."""
    mine, its = in_one_order(one.vocabulary, other.vocabulary)
    return mine[one.codes], its[other.codes]
