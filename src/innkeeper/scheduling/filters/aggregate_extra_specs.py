"""Keep only hosts whose aggregate metadata matches the flavor's extra specs.

The filter reads extra specs with the scope ``aggregate_instance_extra_specs:`` and extra specs
without a scope. ``ComputeCapabilitiesFilter`` reads names without a scope as capabilities, so use
the scope if both filters are enabled.
"""

from __future__ import annotations

from functools import partial

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.numerals import number_of
from innkeeper.domain.placing import Comparison, RequestSpec
from innkeeper.scheduling import comparisons
from innkeeper.scheduling.facts.metadata import Metadata, values_of
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.capabilities import column_of
from innkeeper.snapshot.columns import HostTable

NAME = "AggregateInstanceExtraSpecsFilter"
REASON = "no aggregate of the host matches the flavor's extra specs"
READS: Reads = ("flavor_specs",)

SCOPE = "aggregate_instance_extra_specs:"
NO_DEMAND = frozenset({"group_policy", "affinity_id"})
ALL = slice(None)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where the aggregates of the host have a matching value for each extra spec."""
    demands = demands_of(spec.flavor_specs)
    if not demands:
        return None
    return hosts.by_aggregates(partial(_meets_all, demands), rows)


def demands_of(flavor_specs: tuple[tuple[str, str], ...]) -> tuple[Comparison, ...]:
    """Parse the extra specs that apply. Raises ``Invalid`` for an operator without an operand."""
    pairs = [(key.removeprefix(SCOPE), text) for key, text in flavor_specs if _applies(key)]
    return tuple(comparisons.parse(key, text) for key, text in pairs)


def _applies(key: str) -> bool:
    return key.startswith(SCOPE) or (":" not in key and key not in NO_DEMAND)


def _meets_all(demands: tuple[Comparison, ...], metadata: Metadata) -> bool:
    return all(_meets(metadata, each) for each in demands)


def _meets(metadata: Metadata, demand: Comparison) -> bool:
    texts = sorted(values_of(metadata, demand.name))
    is_number = demand.operator in comparisons.NUMERIC
    values = [number_of(text) for text in texts] if is_number else texts
    # This column has one row per value instead of one per host, to use the same comparison rules.
    return bool(comparisons.mask(column_of([*values]), demand, ALL).any())


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Describe each extra spec, with the number of hosts whose aggregates meet the extra spec."""
    lines = [_line(hosts, each) for each in demands_of(spec.flavor_specs)]
    return "; ".join(lines) or "no requirements on aggregates"


def _line(hosts: HostTable, demand: Comparison) -> str:
    met = hosts.by_aggregates(partial(_meets_all, (demand,)), ALL)
    return f"an aggregate with {_words(demand)}: on {int(met.sum())} hosts"


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """List the extra specs that no aggregate of the host meets."""
    metadata = hosts.aggregates.metadata(int(hosts.aggregate_codes[index]))
    unmet = [each for each in demands_of(spec.flavor_specs) if not _meets(metadata, each)]
    return [f"no aggregate with {_words(each)}" for each in unmet]


def _words(demand: Comparison) -> str:
    return " ".join((demand.name, demand.operator, *demand.operands))
