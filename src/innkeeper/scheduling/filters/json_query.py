"""Only hosts of which a query holds that came with the request."""

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
REASON = "the request's query does not hold of the host, or asks what is not known of it"
READS: Reads = ("query", "rules")
HINTS = ("query",)

ALL = slice(None)
WORDS_TOLD_MAX = 10


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where the query certainly holds."""
    if not spec.query:
        return None
    lookup = partial(variables.find, hosts, spec, rows)
    return expressions.mask(spec.query, lookup, row_count(hosts, rows))


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Which hosts' capabilities are known."""
    return freshness.stamp(hosts, spec) if spec.query else None


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """The first variables of the query, and of how many hosts each is known."""
    words = expressions.variables(spec.query or ())[:WORDS_TOLD_MAX]
    # As the client wrote them, which may be anything.
    told = [f"{word!a:.60} is known of {_known(hosts, spec, word)} hosts" for word in words]
    return "; ".join(told) or "the query asks nothing about hosts"


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """What the first variables of the query are on one host."""
    words = expressions.variables(spec.query or ())[:WORDS_TOLD_MAX]
    lookup = partial(variables.find, hosts, spec, slice(index, index + 1))
    found = [(word, lookup(word)) for word in words if word not in variables.HOST_NAMES]
    return [f"{word!a:.60} is {_told(operand)}" for word, operand in found]


def _told(operand: Operand | None) -> str:
    value = None if operand is None else only(operand)
    if isinstance(value, float):
        return f"{value:g}"
    return "not known" if value is None else f"{value!a:.60}"


def _known(hosts: HostTable, spec: RequestSpec, word: str) -> int:
    found = variables.find(hosts, spec, ALL, word)
    if found is None:
        return 0
    # A constant has no dimension: then it is known of all, or of none.
    known = found.is_known
    return int(known.sum()) if known.ndim else hosts.host_count * int(known)
