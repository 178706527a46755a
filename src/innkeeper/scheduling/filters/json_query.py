"""Keep only hosts that match the query in the request."""

from __future__ import annotations

from functools import partial

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling import expressions, variables
from innkeeper.scheduling.facts import freshness
from innkeeper.scheduling.facts.masks import row_count
from innkeeper.scheduling.operands import Operand, only
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "JsonFilter"
REASON = "the host does not match the query, or lacks a value that the query needs"
READS: Reads = ("query", "rules")
HINTS = ("query",)

ALL = slice(None)
WORDS_SHOWN_MAX = 10


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where the query is true for all possible values of unknown variables."""
    if not spec.query:
        return None
    lookup = partial(variables.find, hosts, spec, rows)
    return expressions.mask(spec.query, lookup, row_count(hosts, rows))


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Return a cache key that changes if the set of hosts with known capabilities changes."""
    return freshness.stamp(hosts, spec) if spec.query else None


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """List the first variables of the query, each with the number of hosts whose value is known."""
    words = expressions.variables(spec.query or ())[:WORDS_SHOWN_MAX]
    # Names of variables are arbitrary client input, so they are escaped and truncated.
    lines = [f"{word!a:.60} is known for {_known(hosts, spec, word)} hosts" for word in words]
    return "; ".join(lines) or "the query has no variables"


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """List the host's values for the first variables of the query."""
    words = expressions.variables(spec.query or ())[:WORDS_SHOWN_MAX]
    lookup = partial(variables.find, hosts, spec, slice(index, index + 1))
    found = [(word, lookup(word)) for word in words if word not in variables.HOST_NAMES]
    return [f"{word!a:.60} is {_text(operand)}" for word, operand in found]


def _text(operand: Operand | None) -> str:
    value = None if operand is None else only(operand)
    if isinstance(value, float):
        return f"{value:g}"
    return "not known" if value is None else f"{value!a:.60}"


def _known(hosts: HostTable, spec: RequestSpec, word: str) -> int:
    found = variables.find(hosts, spec, ALL, word)
    if found is None:
        return 0
    # A value without a dimension is a constant, which is known for all hosts or for none.
    known = found.is_known
    return int(known.sum()) if known.ndim else hosts.host_count * int(known)
