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
from innkeeper.snapshot.vocabulary import FALSE, NO_CODE, TRUE, Ranks, Vocabulary, in_one_order

Truth = tuple[Mask | np.bool_, Mask | np.bool_]
"""Where something holds, and where it does not; where neither is true, it is not known."""
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
    """Values by row: ``numbers``, with ``nan`` where the value is none, or ``values[codes]``.

    ``NO_CODE`` is where nothing is known or the value is among the numbers alone. A literal has
    arrays without a dimension. ``find`` is there for names, of which each row has its own: it
    gives the rows with a name, and a name has no order.
    """

    numbers: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    vocabulary: Vocabulary = NOTHING
    find: Callable[[str], Mask] | None = None

    @property
    def values(self) -> Sequence[Any]:
        """The values that codes stand for."""
        return self.vocabulary.values

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
    return Operand(_NO_NUMBER, _FIRST, Vocabulary((value,)))


def number(column: npt.NDArray[np.float64]) -> Operand:
    """A number for each row."""
    return Operand(column, _NO_TEXT)


def coded(codes: npt.NDArray[np.int32], values: Sequence[Any]) -> Operand:
    """Something that is no number for each row."""
    return Operand(_NO_NUMBER, codes, Vocabulary(values))


def name(find: Callable[[str], Mask]) -> Operand:
    """A name for each row, and how to find the rows of one."""
    return Operand(_NO_NUMBER, _FIRST, find=find)


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
    ranks = operand.vocabulary.ranks()[operand.codes]
    return ranks == TRUE, ranks == FALSE


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
    are_lists = other.vocabulary.are_lists()
    if are_lists is None:
        return holds, fails
    if one.find is not None or one.codes.ndim or one.numbers.ndim:
        # What varies by row is not looked for in what varies by row.
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
    # Comparing with nan is false in every order.
    holds = order(one.numbers, other.numbers) | order(mine, its)
    are_numbers = ~(np.isnan(one.numbers) | np.isnan(other.numbers))
    are_texts = ~(np.isnan(mine) | np.isnan(its))
    return holds, (are_numbers | are_texts) & ~holds


def _ranks(one: Operand, other: Operand) -> tuple[Ranks, Ranks]:
    """By row, texts as numbers in their order, and truths; ``nan`` for what is neither."""
    mine, its = in_one_order(one.vocabulary, other.vocabulary)
    return mine[one.codes], its[other.codes]
