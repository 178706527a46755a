"""Small host tables and request specs, for tests that need no store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.ids import AgentId, HostIndex, ProviderId, ProviderUuid
from innkeeper.domain.placing import BuildPlan, Comparison, RequestSpec
from innkeeper.scheduling import comparisons
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.scheduling.schedulers.catalogue import AllAtOnce
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.scheduling.weighers.catalogue import WEIGHERS
from innkeeper.snapshot.amounts import AmountTable
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import GENERAL, POOLED

NOW_S = 1_000_000.0
SILENCE_MAX_S = 60.0

PLAIN_FILTERS = (
    "ComputeFilter",
    "AvailabilityZoneFilter",
    "CapacityFilter",
    "ComputeCapabilitiesFilter",
    "ForcedHostFilter",
)

Units = tuple[int, int, int]
ANY_AMOUNT: Units = (1, UNIT_MAX, 1)


@dataclass(frozen=True)
class Sketch:
    """One host of a test; ``units`` are min_unit, max_unit and step_size by class."""

    name: str
    free: Mapping[str, int]
    used: Mapping[str, int] = field(default_factory=dict)
    units: Mapping[str, Units] = field(default_factory=dict)
    zone: str = "nova"
    is_open: bool = True
    agent: str = "agent"
    heard_s: float = NOW_S
    traits: tuple[str, ...] = ()
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    generation: int = 1
    aggregates: frozenset[str] = frozenset()
    pcloud: str | None = None
    """The owner of its pcloud; an empty text means that the host is in a pool."""
    pcloud_name: str = ""
    is_pcloud_open: bool = False
    needed_from_s: float = 0.0


@dataclass(frozen=True)
class Pool:
    """One pool of a test."""

    free: Mapping[str, int]
    aggregates: frozenset[str]
    used: Mapping[str, int] = field(default_factory=dict)
    units: Mapping[str, Units] = field(default_factory=dict)
    generation: int = 1


POOL_IDS = 1000
"""The lowest id of the pools' providers."""


def host(
    name: str, *, vcpus: int = 16, memory_mb: int = 32_768, disk_gb: int = 500, **more: Any
) -> Sketch:
    """Sketch a host with these free amounts; ``more`` are other fields of the sketch."""
    free = {"VCPU": vcpus, "MEMORY_MB": memory_mb, "DISK_GB": disk_gb}
    return Sketch(name, {**free, **more.pop("free", {})}, **more)


def table_of(*sketches: Sketch) -> HostTable:
    """Make the table of these hosts, in this order; providers are numbered from 1."""
    table = HostTable()
    for number, each in enumerate(sketches, start=1):
        fill(table, row_for(table, number, each.name), each)
    return table


def add_pools(table: HostTable, *pools: Pool) -> HostTable:
    """Add pools to a table of hosts; returns the table."""
    mine = table.pools
    for number, each in enumerate(pools, start=POOL_IDS):
        mine.add_rows([ProviderId(number)])
        row = mine.index_of[ProviderId(number)]
        mine.uuids[row] = ProviderUuid(f"pool-{number}")
        mine.generations[row] = each.generation
        mine.aggregates[row] = each.aggregates
        _fill_amounts(mine, row, each)
    for name in mine.free:
        table.ensure_class(name)
    mine.regroup()
    table.knows_memberships = True
    return table


def row_for(table: HostTable, provider_id: int, name: str) -> HostIndex:
    """Return the row of a host; adds it if it is missing."""
    table.ensure_rows([(ProviderId(provider_id), name)])
    return table.index_of[ProviderId(provider_id)]


def fill(table: HostTable, index: HostIndex, each: Sketch) -> None:
    """Write everything about one host except its name into its row."""
    table.clear_row(index)
    table.generations[index] = each.generation
    table.is_open[index] = each.is_open
    table.zone_codes[index] = table.zone_code(each.zone)
    table.set_agent(index, AgentId(each.agent))
    table.set_heartbeat(AgentId(each.agent), each.heard_s)
    table.set_facts_seen(index, each.heard_s)
    table.set_capabilities(index, each.capabilities)
    table.membership_codes[index] = table.pools.code(each.aggregates)
    code = GENERAL if each.pcloud is None else POOLED
    if each.pcloud:
        code = table.dedications.code(each.pcloud)
    table.dedicate(index, code, each.pcloud_name, is_open=each.is_pcloud_open)
    table.needed_from_s[index] = each.needed_from_s
    _fill_amounts(table, index, each)
    for trait in each.traits:
        table.ensure_trait(trait)[index] = True


def _fill_amounts(table: AmountTable, index: HostIndex, each: Sketch | Pool) -> None:
    for name in each.free.keys() | each.used.keys():
        table.ensure_class(name)
        table.free[name][index] = each.free.get(name, 0)
        table.used[name][index] = each.used.get(name, 0)
        rule = each.units.get(name, ANY_AMOUNT)
        table.set_units(name, index, rule)


def asking(vcpus: int = 1, memory_mb: int = 1024, disk_gb: int = 10, **more: Any) -> RequestSpec:
    """Return a request for servers of these amounts; ``more`` are fields of a request spec."""
    amounts = {"VCPU": vcpus, "MEMORY_MB": memory_mb, "DISK_GB": disk_gb}
    wanted = {name: amount for name, amount in amounts.items() if amount}
    wanted |= more.pop("amounts", {})
    settled: dict[str, Any] = {
        "project_id": "project",
        "user_id": "user",
        "now_s": NOW_S,
        "silence_max_s": SILENCE_MAX_S,
        "seed": 1,
        **more,
    }
    return RequestSpec(amounts=wanted, **settled)


def asking_for(**amounts: int) -> RequestSpec:
    """Return a request for one server of exactly these amounts, by resource class."""
    return asking(0, 0, 0, amounts=amounts)


def plan(
    pipeline: Pipeline, hosts: HostTable, spec: RequestSpec, subset_size: int = 1
) -> BuildPlan:
    """Plan with the default driver, without hosts to avoid."""
    return AllAtOnce(pipeline, Choice(subset_size)).plan(hosts, spec)


def demand(name: str, text: str) -> Comparison:
    """Parse an extra spec's value as the flavor does."""
    return comparisons.parse(name, text)


def pipeline_of(**multipliers: float) -> Pipeline:
    """Return a pipeline of the simplest filters and these weighers, or with equal weights."""
    return Pipeline(
        tuple(FILTERS[name] for name in PLAIN_FILTERS),
        tuple((WEIGHERS[name], by) for name, by in multipliers.items()),
    )


def picture(table: HostTable) -> dict[str, bytes | tuple[Any, ...]]:
    """Return everything that a decision could change, as bytes."""
    columns: dict[str, bytes | tuple[Any, ...]] = {
        "names": tuple(table.names),
        "providers": tuple(table.index_of.items()),
        "generations": table.generations.tobytes(),
        "is_open": table.is_open.tobytes(),
        "zones": table.zone_codes.tobytes(),
        "agents": table.agent_codes.tobytes(),
    }
    for owner, amounts in (("", table), ("pools' ", table.pools)):
        for kind, keyed in (("free", amounts.free), ("used", amounts.used)):
            columns |= {f"{owner}{kind} {name}": column.tobytes() for name, column in keyed.items()}
    columns["pools' generations"] = table.pools.generations.tobytes()
    return columns


def names_where(table: HostTable, mask: Any) -> set[str]:
    """Return the names of the hosts for which a mask is true."""
    return {table.names[index] for index in np.flatnonzero(mask)}
