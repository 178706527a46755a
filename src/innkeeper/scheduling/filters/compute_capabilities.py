"""Only hosts with the traits and capabilities that the flavor's extra specs ask for.

Capabilities that an agent has not reported for too long meet no demand; traits are kept by the
service itself, and do not age.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import Comparison, RequestSpec
from innkeeper.scheduling import comparisons
from innkeeper.scheduling.facts import freshness
from innkeeper.scheduling.facts.masks import Counting, exact_count, told_count
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "ComputeCapabilitiesFilter"
REASON = "the host lacks a trait or capability, or has a forbidden trait"
READS: Reads = ("required_traits", "forbidden_traits", "comparisons", "rules")


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where all required traits are, no forbidden one is, and all comparisons hold."""
    if not (spec.required_traits or spec.forbidden_traits or spec.comparisons):
        return None
    if not spec.required_traits <= hosts.traits.keys():
        return np.zeros(hosts.host_count, dtype=np.bool_)[rows]
    forbidden = spec.forbidden_traits & hosts.traits.keys()
    had = [hosts.traits[name][rows] for name in spec.required_traits]
    lacked = [~hosts.traits[name][rows] for name in forbidden]
    met = [_meets(hosts, comparison, rows) for comparison in spec.comparisons]
    if met and (fresh := freshness.fresh(hosts, spec, rows)) is not None:
        met.append(fresh)
    # Not None where nobody has a forbidden trait yet: something is asked, and all meet it.
    everybody: Mask = np.ones(hosts.host_count, dtype=np.bool_)[rows]
    return reduce(np.logical_and, [*had, *lacked, *met], everybody)


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Which hosts' capabilities are known, if any are asked for."""
    return freshness.stamp(hosts, spec) if spec.comparisons else None


def _meets(hosts: HostTable, comparison: Comparison, rows: Rows) -> Mask:
    return comparisons.mask(hosts.capability(comparison.name), comparison, rows)


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Every demand, with the number of hosts that meet it alone."""
    return _missing(hosts, spec, told_count)


def missing_counted(hosts: HostTable, spec: RequestSpec) -> str:
    """The same in numbers."""
    return _missing(hosts, spec, exact_count)


def _missing(hosts: HostTable, spec: RequestSpec, count: Counting) -> str:
    required = [_told(hosts, "trait", name, count) for name in sorted(spec.required_traits)]
    forbidden = [
        _told(hosts, "forbidden trait", name, count) for name in sorted(spec.forbidden_traits)
    ]
    compared = [_compared(hosts, comparison, count) for comparison in spec.comparisons]
    stale = [_stale(hosts, spec, count)] if compared else []
    return "; ".join([*required, *forbidden, *compared, *filter(None, stale)])


def _stale(hosts: HostTable, spec: RequestSpec, count: Counting) -> str:
    fresh = freshness.fresh(hosts, spec, slice(None))
    if fresh is None or fresh.all():
        return ""
    return f"{count(hosts, ~fresh)} hosts have not reported theirs for too long"


def _told(hosts: HostTable, what: str, name: str, count: Counting) -> str:
    return f"{what} {name}: on {count(hosts, hosts.traits.get(name))} hosts"


def _compared(hosts: HostTable, comparison: Comparison, count: Counting) -> str:
    words = " ".join((comparison.name, comparison.operator, *comparison.operands))
    found = _meets(hosts, comparison, slice(None))
    return f"capability {words}: on {count(hosts, found)} hosts"


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """Each demand that one host does not meet, beside what it has instead."""
    row = slice(index, index + 1)
    fresh = freshness.fresh(hosts, spec, row)
    is_known = fresh is None or bool(fresh[0])
    required, forbidden = sorted(spec.required_traits), sorted(spec.forbidden_traits)
    unmet = [c for c in spec.comparisons if not (is_known and _meets(hosts, c, row)[0])]
    return [
        *(f"trait {name} missing" for name in required if not _has(hosts, name, index)),
        *(f"trait {name} forbidden" for name in forbidden if _has(hosts, name, index)),
        *(_lack(hosts, each, index, is_known=is_known) for each in unmet),
    ]


def _has(hosts: HostTable, trait: str, index: HostIndex) -> bool:
    return trait in hosts.traits and bool(hosts.traits[trait][index])


def _lack(hosts: HostTable, comparison: Comparison, index: HostIndex, *, is_known: bool) -> str:
    column = hosts.capability(comparison.name)
    code = int(column.codes[index])
    has = "nothing is known of it" if code < 0 else f"it is {column.values[code]!r:.60}"
    words = " ".join((comparison.name, comparison.operator, *comparison.operands))
    return f"capability {words}: " + (has if is_known else "not reported for too long")
