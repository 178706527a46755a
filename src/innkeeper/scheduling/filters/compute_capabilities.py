"""Keep only hosts with the traits and capabilities that the flavor's extra specs require.

Capabilities expire if the agent stops reporting them. Traits do not expire.
"""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import Comparison, RequestSpec
from innkeeper.scheduling import comparisons
from innkeeper.scheduling.facts import freshness
from innkeeper.scheduling.facts.masks import Counting, exact_count, public_count
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "ComputeCapabilitiesFilter"
REASON = "the host lacks a trait or capability, or has a forbidden trait"
READS: Reads = ("required_traits", "forbidden_traits", "comparisons", "rules")


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True for hosts that meet all comparisons, and all conditions on traits."""
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
    # If no host has a forbidden trait, the mask is True everywhere. It is not None, because the
    # filter applies.
    all_rows: Mask = np.ones(hosts.host_count, dtype=np.bool_)[rows]
    return reduce(np.logical_and, [*had, *lacked, *met], all_rows)


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Return a cache key that changes if the set of hosts with known capabilities changes."""
    return freshness.stamp(hosts, spec) if spec.comparisons else None


def _meets(hosts: HostTable, comparison: Comparison, rows: Rows) -> Mask:
    return comparisons.mask(hosts.capability(comparison.name), comparison, rows)


def _missing(hosts: HostTable, spec: RequestSpec, count: Counting) -> str:
    required, forbidden = sorted(spec.required_traits), sorted(spec.forbidden_traits)
    found = [
        *((f"trait {name}", hosts.traits.get(name)) for name in required),
        *((f"forbidden trait {name}", hosts.traits.get(name)) for name in forbidden),
        *((f"capability {_words(c)}", _meets(hosts, c, slice(None))) for c in spec.comparisons),
    ]
    lines = [f"{text}: on {count(hosts, mask)} hosts" for text, mask in found]
    fresh = freshness.fresh(hosts, spec, slice(None)) if spec.comparisons else None
    if fresh is not None and not fresh.all():
        lines.append(f"{count(hosts, ~fresh)} hosts have not reported their capabilities recently")
    return "; ".join(lines)


missing = partial(_missing, count=public_count)
"""Lists each condition with the number of hosts that meet it. If any host is dedicated, the numbers
are hidden."""
missing_counted = partial(_missing, count=exact_count)


def _words(comparison: Comparison) -> str:
    return " ".join((comparison.name, comparison.operator, *comparison.operands))


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """Describe each condition that the host does not meet, with the host's own value."""
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
    has = "not reported" if code < 0 else f"it is {column.values[code]!r:.60}"
    return f"capability {_words(comparison)}: " + (has if is_known else "not reported recently")
