"""Parses queries of the JSON filter, and evaluates them on columns of the host table.

A query is ``[operator, argument, ...]``. The arguments of comparisons are values and variables
(``"$name"``). The arguments of ``and``, ``or`` and ``not`` are queries. An empty query is true for
all hosts.

Always true: evaluation uses three-valued logic. A comparison with an unknown value is neither true
nor false. A host passes only if the query is true for all possible values of the unknowns.

A parsed query is the JSON value with tuples instead of lists. Parsing a parsed query again does not
change the query.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import Expression
from innkeeper.scheduling.operands import COMPARED, Operand, Truth, compare, is_among, literal
from innkeeper.scheduling.operands import truth as truth_of
from innkeeper.snapshot.amounts import Mask

LENGTH_MAX = 16_384
DEPTH_MAX = 16
PARTS_MAX = 200
"""The maximum number of operators, values and variables in one query. Each of these parts may read
a whole column."""
WHOLE_MAX = 2**53
"""The largest integer in a query. Columns contain doubles, which are exact up to this integer."""

AND, OR, NOT, IN = "and", "or", "not", "in"
LOGICAL = frozenset({AND, OR, NOT})
SIGIL = "$"

Lookup = Callable[[str], Operand | None]
"""A function that returns the values of a variable, given its name without ``$``. The function
returns None for an unknown variable."""


class InvalidQuery(Invalid):
    """The query is malformed. ``why`` is the reason, as a clause for a longer sentence."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The query for hosts cannot be used: {why}.")
        self.why = why


def parse(text: str) -> Expression:
    """Parse a query from JSON text, or raise :class:`InvalidQuery`."""
    return _read(load(text))


def load(text: str) -> Any:
    """Read JSON text of a bounded length, or raise :class:`InvalidQuery`."""
    if len(text) > LENGTH_MAX:
        _refuse(f"it is longer than {LENGTH_MAX} characters")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        _refuse("it is not valid JSON")


def read(given: Any) -> Expression:
    """Parse a query from JSON values, with lists or tuples."""
    query = _read(given)
    # Only strings are counted, because the length of the numbers in the original text is unknown.
    if sum(len(each) for each in _walk(query) if isinstance(each, str)) > LENGTH_MAX:
        _refuse(f"its strings have more than {LENGTH_MAX} characters in total")
    return query


def _read(given: Any) -> Expression:
    query = _query(given, 1)
    if size(query) > PARTS_MAX:
        _refuse(f"it has more than {PARTS_MAX} operators, values and variables")
    return query


def _refuse(why: str) -> NoReturn:
    raise InvalidQuery(why)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _query(given: Any, depth: int) -> Expression:
    if depth > DEPTH_MAX:
        _refuse(f"it is nested deeper than {DEPTH_MAX} levels")
    if given == {} or (isinstance(given, list | tuple) and not given):
        return ()
    if not isinstance(given, list | tuple):
        _refuse("a query is a list that begins with an operator")
    operator, *arguments = given
    if not isinstance(operator, str):
        _refuse("a query is a list that begins with an operator")
    if operator not in (LOGICAL | COMPARED.keys() | {IN}):
        _refuse(f"{operator!a:.40} is not an operator")
    if operator in LOGICAL:
        _demand_count(operator, len(arguments), 1, 1 if operator == NOT else None)
        return (operator, *(_condition(each, depth) for each in arguments))
    _demand_count(operator, len(arguments), 2, None)
    return (operator, *(_value(each) for each in arguments))


def _demand_count(operator: str, count: int, least: int, most: int | None) -> None:
    if count < least or (most is not None and count > most):
        bound = f"{least}" if most is not None else f"at least {least}"
        _refuse(f"the operator {operator!r} takes {bound} arguments, not {count}")


def _condition(given: Any, depth: int) -> Any:
    if isinstance(given, bool) or is_variable(given):
        return given
    return _query(given, depth + 1)


def _value(given: Any) -> Any:
    if isinstance(given, bool | str):
        if given == SIGIL:
            _refuse("a variable needs a name after the '$'")
        return given
    if not isinstance(given, int | float):
        _refuse("an operand must be a number, a string, true, false or a variable")
    try:
        is_finite = math.isfinite(given)
    except OverflowError:
        is_finite = False
    if not is_finite or (isinstance(given, int) and abs(given) > WHOLE_MAX):
        _refuse(f"a number is too large; integers may be up to {WHOLE_MAX}")
    return given


def is_variable(given: Any) -> bool:
    """Return whether an operand is a variable."""
    return isinstance(given, str) and len(given) > 1 and given.startswith(SIGIL)


def _walk(part: Any) -> Iterator[Any]:
    yield part
    if isinstance(part, tuple):
        for each in part[1:]:
            yield from _walk(each)


def size(query: Expression) -> int:
    """Return the number of a query's operators, values and variables."""
    return sum(1 for _ in _walk(query))


def variables(query: Expression) -> list[str]:
    """Return the names of a query's variables, sorted and without duplicates."""
    return sorted({each.removeprefix(SIGIL) for each in _walk(query) if is_variable(each)})


def mask(query: Expression, lookup: Lookup, rows: int) -> Mask:
    """Return a mask with ``rows`` elements, which is True where the query is certainly true."""
    holds, _ = _truth(query, lookup)
    return np.broadcast_to(holds, (rows,)).copy()


def _truth(part: Any, lookup: Lookup) -> Truth:
    if isinstance(part, bool):
        return np.bool_(part), np.bool_(not part)
    if isinstance(part, str):
        return truth_of(_operand(part, lookup))
    if not part:
        return np.True_, np.False_
    operator, *arguments = part
    if operator in LOGICAL:
        truths = [_truth(each, lookup) for each in arguments]
        # "and" and "or" with one argument have the truth value of the argument.
        return truths[0][::-1] if operator == NOT else reduce(_JOINED[operator], truths)
    return _compared(operator, [_operand(each, lookup) for each in arguments])


def _compared(operator: str, operands: list[Operand | None]) -> Truth:
    first, *rest = operands
    if operator == IN:
        return reduce(_either, [is_among(first, each) for each in rest])
    return reduce(_both, [compare(operator, first, each) for each in rest])


def _operand(part: Any, lookup: Lookup) -> Operand | None:
    return lookup(part.removeprefix(SIGIL)) if is_variable(part) else literal(part)


def _both(one: Truth, other: Truth) -> Truth:
    return one[0] & other[0], one[1] | other[1]


def _either(one: Truth, other: Truth) -> Truth:
    return one[0] | other[0], one[1] & other[1]


_JOINED = {AND: _both, OR: _either}
