"""Make the host tables of simulated fleets.

Always true: schedulers can use these tables like tables that were read from a database. All hosts
are empty at first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import AgentId, HostIndex, ProviderId
from innkeeper.scheduling.simulation.workload import Workload
from innkeeper.snapshot.columns import HostTable

AGENT = AgentId("00000000-0000-4000-8000-00000000d1ce")
HOSTS_MAX = 1_000_000
ROUNDING = 1e-6
NOW_S = 0.0
"""The time of all requests. The time never advances, so no agent goes down in a simulation."""


@dataclass(frozen=True, slots=True)
class HostShape:
    """A type of host: ``totals`` and allocation ``ratios`` are by resource class."""

    name: str
    totals: Mapping[str, int]
    ratios: Mapping[str, float] = field(default_factory=dict)
    zone: str = "nova"
    traits: tuple[str, ...] = ()
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    def capacity(self, class_name: str, parts: Mapping[str, int]) -> int:
        """Return the capacity of a class in parts. ``parts`` has the number of parts per unit."""
        whole = self.totals.get(class_name, 0) * parts.get(class_name, 1)
        # The ratio may have been computed from this product. Rounding must not reduce the product.
        return math.floor(whole * self.ratios.get(class_name, 1.0) + ROUNDING)


@dataclass(frozen=True, slots=True)
class HostGroup:
    """A group of hosts of one shape. ``count`` is None if the simulation must find it."""

    shape: HostShape
    count: int | None


def table_of(groups: Sequence[HostGroup], workload: Workload) -> HostTable:
    """Make the host table of the groups, in their order. Amounts are in parts of units.

    Raises :class:`Invalid` if there are no hosts, or more than ``HOSTS_MAX``.
    """
    count = sum(group.count or 0 for group in groups)
    if not 0 < count <= HOSTS_MAX:
        raise Invalid(f"There must be between 1 and {HOSTS_MAX} hosts, not {count}.")
    table = HostTable()
    width = len(str(count))
    table.ensure_rows(
        (ProviderId(number), f"host-{number:0{width}d}") for number in range(1, count + 1)
    )
    table.generations[:] = 1
    table.is_open[:] = True
    table.set_heartbeat(AGENT, NOW_S)
    start = 0
    for group in groups:
        stop = start + (group.count or 0)
        _fill(table, start, stop, group.shape, workload.parts)
        start = stop
    return table


def _fill(
    table: HostTable, start: int, stop: int, shape: HostShape, parts: Mapping[str, int]
) -> None:
    rows = slice(start, stop)
    for name, total in shape.totals.items():
        table.ensure_class(name)
        table.set_capacity(name, rows, np.full(stop - start, float(shape.capacity(name, parts))))
        table.set_units(name, rows, (1.0, float(total * parts.get(name, 1)), 1.0))
    for trait in shape.traits:
        table.ensure_trait(trait)[rows] = True
    table.zone_codes[rows] = table.zone_code(shape.zone)
    for index in range(start, stop):
        table.set_agent(HostIndex(index), AGENT)
        table.set_facts_seen(HostIndex(index), NOW_S)
        if shape.capabilities:
            table.set_capabilities(HostIndex(index), shape.capabilities)


def lacking(groups: Sequence[HostGroup], workload: Workload) -> tuple[str, ...]:
    """Return the names of the server shapes that do not fit on any empty host."""
    return tuple(
        shape.name
        for shape in workload.shapes
        if not any(
            all(
                amount <= group.shape.totals.get(name, 0) * workload.parts.get(name, 1)
                and amount <= group.shape.capacity(name, workload.parts)
                for name, amount in shape.amounts.items()
            )
            for group in groups
        )
    )
