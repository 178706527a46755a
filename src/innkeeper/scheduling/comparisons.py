"""Parses and evaluates comparisons of capabilities, in the syntax of Nova's flavor extra specs.

Numbers are compared as whole columns. Texts are compared once per distinct value. A host that does
not report a capability fails every comparison with this capability.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.domain.numerals import number_of
from innkeeper.domain.placing import Comparison
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.capabilities import CapabilityColumn

NUMERIC: dict[str, Callable[[Any, float], Any]] = {
    # As in Nova, "=" on a number is "at least".
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
}
TEXT: dict[str, Callable[[str, str], bool]] = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
}
IN, ALL_IN, OR, IS = "<in>", "<all-in>", "<or>", "<is>"
WORDS = frozenset({*NUMERIC, *TEXT, IN, ALL_IN, OR, IS})
PLAIN = "plain"
"""The default operator, for a value without an operator. The texts must be equal."""


def parse(name: str, text: str) -> Comparison:
    """Parse the value of an extra spec.

    Raises :class:`Invalid` if an operand is missing, or if a numeric operator has an operand that
    is not a number.
    """
    words = text.split()
    if not words or words[0] not in WORDS:
        return Comparison(name, PLAIN, (text,))
    first, rest = words[0], words[1:]
    if first in (OR, ALL_IN):
        rest = [word for word in rest if word != first]
    if not rest:
        raise Invalid(f"The extra spec {name!r} has the operator {first} without an operand.")
    if first in NUMERIC and number_of(rest[0]) is None:
        raise Invalid(f"The extra spec {name!r} compares with {rest[0]!r}, which is not a number.")
    return Comparison(name, first, tuple(rest))


def mask(column: CapabilityColumn, comparison: Comparison, rows: Rows) -> Mask:
    """Return True where a host's capability meets the comparison."""
    if comparison.operator in NUMERIC:
        number = number_of(comparison.operands[0])
        assert number is not None, "parse rejects operands that are not numbers"
        numbers = column.numbers[rows]
        # "!=" is true for NaN, but an unknown value must not meet any comparison.
        compared: Mask = NUMERIC[comparison.operator](numbers, number) & ~np.isnan(numbers)
        return compared
    verdicts = [_meets(value, comparison) for value in column.values]
    # NO_CODE is -1, so hosts without a value get the last element.
    by_code = np.array([*verdicts, False], dtype=np.bool_)
    met: Mask = by_code[column.codes[rows]]
    return met


def meets(value: Any, comparison: Comparison) -> bool:
    """Return whether one value meets the comparison."""
    if comparison.operator in NUMERIC:
        number, operand = number_of(str(value)), number_of(comparison.operands[0])
        assert operand is not None, "parse rejects operands that are not numbers"
        return number is not None and bool(NUMERIC[comparison.operator](number, operand))
    return _meets(value, comparison)


def _meets(value: Any, comparison: Comparison) -> bool:
    operands = comparison.operands
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if comparison.operator in TEXT:
        return TEXT[comparison.operator](text, operands[0])
    if comparison.operator == IN:
        return operands[0] in (value if isinstance(value, list) else text)
    if comparison.operator == ALL_IN:
        return isinstance(value, list | str) and all(word in value for word in operands)
    if comparison.operator == OR:
        return text in operands
    if comparison.operator == IS:
        return (text.lower() in _TRUE) == (operands[0].lower() in _TRUE)
    return text == operands[0]


_TRUE = frozenset({"true", "1", "yes", "on", "y", "t"})
