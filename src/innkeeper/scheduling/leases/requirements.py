"""Requirements of reservations, which are conditions on the facts of hosts.

The language is the same as for queries (:mod:`innkeeper.scheduling.expressions`). ``==`` means
``=``. Each comparison names a fact: ``["==", "$cpu_arch", "x86_64"]``.

Always true: both values of a comparison are normalized by :mod:`innkeeper.domain.facts`, to
numbers, versions or texts. A host without the fact never matches a comparison, not even one with
``!=``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.domain.facts import normalized_value
from innkeeper.domain.placing import Expression
from innkeeper.scheduling import expressions
from innkeeper.scheduling.operands import EQUAL, Operand
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.calendar import Calendar
from innkeeper.snapshot.vocabulary import NO_CODE

SHOWN_MAX = 200
"""The maximum number of characters of malformed requirements that an error message shows."""
EMPTY = frozenset({"", "none", "null", "[]", "{}"})
"""Texts that clients send if they have no requirement."""
HOST_FACTS = frozenset(
    {"availability_zone", "cpu_info", "hypervisor_hostname", "hypervisor_type"}
    | {"hypervisor_version", "local_gb", "memory_mb", "service_name", "vcpus"}
)
"""Facts that every host has. Requirements may name them even if no host is in the freepool."""
TOTAL_LENGTH_MAX = 65_536
TOTAL_PARTS_MAX = 1_000
"""The limits for the requirements of all reservations of one lease. Each part of a requirement may
read a whole column of host facts."""
PARSED_KEPT = 256
"""The maximum number of parsed texts in the cache. One request needs the same text several times.
"""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""Matches characters that databases reject in the names of properties."""
_SAME = {"==": EQUAL}


class Total:
    """Adds up the requirements of a lease.

    Equal texts count only once, because they are evaluated only once.
    """

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._length = 0
        self._parts = 0

    def add(self, texts: Iterable[str]) -> None:
        """Add the requirements of one reservation.

        Raises :class:`Invalid` if the total is too large.
        """
        for text in set(texts) - self._texts:
            self._texts.add(text)
            self._length += len(text)
            if self._length > TOTAL_LENGTH_MAX:
                raise _too_many(f"{TOTAL_LENGTH_MAX} characters")
            self._parts += expressions.size(parse(text) or ())
            if self._parts > TOTAL_PARTS_MAX:
                raise _too_many(f"{TOTAL_PARTS_MAX} operators, values and properties")


def _too_many(limit: str) -> Invalid:
    return Invalid(
        f"The requirements of a lease have more than {limit} in total. Equal requirements of "
        "several reservations count only once."
    )


@lru_cache(PARSED_KEPT)
def parse(text: str | None) -> Expression | None:
    """Parse requirements, or raise :class:`Invalid`. Return ``None`` for empty requirements."""
    if text is None or text.strip().lower() in EMPTY:
        return None
    try:
        query = expressions.read(_renamed(expressions.load(text), 0))
        return _normalized_query(query) or None
    except expressions.InvalidQuery as error:
        raise Invalid(f"Malformed requirements {text[:SHOWN_MAX]}: {error.why}.") from error


def check(expression: Expression, calendar: Calendar) -> None:
    """Raise :class:`Invalid` if requirements name a fact that no host in the freepool has."""
    for name in expressions.variables(expression):
        if name not in HOST_FACTS and not (calendar.facts.column(name).codes != NO_CODE).any():
            raise unknown(name)


def check_all(texts: Iterable[str], calendar: Calendar) -> None:
    """Raise :class:`Invalid` if any of these requirements is malformed or names an unknown fact."""
    for text in texts:
        expression = parse(text)
        if expression is not None:
            check(expression, calendar)


def unknown(name: str) -> Invalid:
    """Return the error for a fact that no host has or the caller may not see."""
    return Invalid(f"Malformed requirements: no host has a property {name[:SHOWN_MAX]}.")


def mask(expression: Expression, calendar: Calendar) -> Mask:
    """Return True for each host of the freepool that satisfies the requirements."""

    def lookup(name: str) -> Operand:
        column = calendar.facts.column(name)
        return Operand(column.numbers, column.codes, column.vocabulary)

    return expressions.mask(expression, lookup, calendar.host_count)


def satisfied(texts: Iterable[str], calendar: Calendar) -> Mask:
    """Return True for each host of the freepool that satisfies all of these requirements."""
    result = np.ones(calendar.host_count, dtype=np.bool_)
    for text in texts:
        expression = parse(text)
        if expression is not None:
            result &= mask(expression, calendar)
    return result


def _renamed(given: Any, depth: int) -> Any:
    """Replace alternative names of operators."""
    if not isinstance(given, list) or not given or depth > expressions.DEPTH_MAX:
        return given
    first, *rest = given
    name = _SAME.get(first, first) if isinstance(first, str) else first
    return [name, *(_renamed(each, depth + 1) for each in rest)]


def _normalized_query(query: Expression) -> Expression:
    """Normalize the values of a query. Raise :class:`Invalid` for a comparison without a fact."""
    if not query:
        return query
    operator, *arguments = query
    if operator in expressions.LOGICAL:
        if not all(isinstance(each, tuple) for each in arguments):
            raise expressions.InvalidQuery(f"the arguments of {operator!r} are lists")
        return (operator, *(_normalized_query(each) for each in arguments))
    are_facts = [expressions.is_variable(each) for each in arguments]
    if not any(are_facts):
        raise expressions.InvalidQuery(
            f"a comparison names no property; names of properties begin with {expressions.SIGIL}"
        )
    if any(isinstance(each, str) and _UNSTORABLE.search(each) for each in arguments):
        raise expressions.InvalidQuery("a text has a NUL character or a lone surrogate")
    values = zip(arguments, are_facts, strict=True)
    return (operator, *(each if is_fact else normalized_value(each) for each, is_fact in values))
