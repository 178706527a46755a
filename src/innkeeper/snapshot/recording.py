"""Convert a host table to plain columns and values, and back.

Always true: a table that :func:`table_of` makes from the result of :func:`copy_of` leads to the
same decisions. The order of rows is kept, because draws among equal hosts depend on this order. The
copy shares no column with the table, and its other values are immutable. Another thread can
therefore process the copy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import (
    AgentId,
    Bookmark,
    ChangeId,
    ClassId,
    HostIndex,
    ProviderId,
    ProviderUuid,
)
from innkeeper.snapshot.amounts import AmountTable
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import GENERAL, POOLED

Column = npt.NDArray[Any]
HOSTS = "hosts"
POOLS = "pools"
KINDS = ("free", "used", "min_unit", "max_unit", "step_size")
"""The kinds of columns that each resource class has."""
AGENTS = "agents/heard_s"
"""The column of last heartbeats. Its rows are in the order of ``agents`` in the state."""
WRITTEN_AS = {"dedication_codes": "pcloud_codes", "is_dedication_open": "is_pcloud_open"}
"""Columns that have other names in recordings, for compatibility with older files."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A copy of a host table: columns by ``table/kind/name``, and other values in ``state``.

    :func:`plain` converts ``state`` to JSON values.
    """

    columns: Mapping[str, Column]
    state: Mapping[str, Any]


def copy_of(table: HostTable) -> Moment:
    """Copy everything that decisions read."""
    pools = table.pools
    columns = {**_copied(HOSTS, table), **_copied(POOLS, pools)}
    columns[AGENTS] = table.agent_seen_s.copy()
    state = {
        "change_id": table.change_id,
        "class_ids": dict(table.class_ids),
        "names": list(table.names),
        "zones": list(table.zones),
        "agents": list(table.agent_ids),
        "capabilities": table.all_capabilities(),
        "aggregates": _aggregates(table),
        "pclouds": _dedications(table),
        "pcloud_names": list(table.pcloud_names),
        "memberships": [pools.aggregates_of(code) for code in range(pools.code_count)],
        "residents": table.residents.copy() if table.knows_servers else None,
        "knows_memberships": table.knows_memberships,
        "pools": {
            "class_ids": dict(pools.class_ids),
            "uuids": list(pools.uuids),
            "aggregates": list(pools.aggregates),
        },
    }
    return Moment(columns, state)


def _copied(label: str, table: AmountTable) -> dict[str, Column]:
    return {
        f"{label}/{kind}/{WRITTEN_AS.get(name, name)}": column.copy()
        for (kind, name), column in table.columns().items()
    }


def _aggregates(table: HostTable) -> list[dict[str, Any]]:
    """Return the sets of aggregates of hosts, with their codes."""
    sets = table.aggregates
    return [
        {"code": code, "ids": sorted(sets.ids(code)), "metadata": list(sets.metadata(code))}
        for code in np.unique(table.aggregate_codes).tolist()
    ]


def _dedications(table: HostTable) -> list[tuple[int, str, list[str], list[str]]]:
    """Return the pclouds and reservations that hosts are dedicated to, with their codes."""
    found: list[tuple[int, str, list[str], list[str]]] = []
    for code in np.unique(table.dedication_codes).tolist():
        uuid, projects, taken_in = table.dedications.facts(code)
        if uuid:
            found.append((code, uuid, sorted(projects), sorted(taken_in)))
    return found


# -- to JSON and back --------------------------------------------------------------------------


def plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state as JSON values. Equal capabilities are stored once."""
    known: dict[str, int] = {}
    codes = [
        known.setdefault(json.dumps(each, sort_keys=True), len(known))
        for each in state["capabilities"]
    ]
    residents = state["residents"]
    return {
        **state,
        "capabilities": {"values": [json.loads(each) for each in known], "codes": codes},
        "memberships": [sorted(each) for each in state["memberships"]],
        "residents": None
        if residents is None
        else [[provider_id, dict(counts)] for provider_id, counts in residents.items()],
        "pools": {
            **state["pools"],
            "aggregates": [sorted(each) for each in state["pools"]["aggregates"]],
        },
    }


def table_of(columns: Mapping[str, Column], state: Mapping[str, Any]) -> HostTable:
    """Make a table from columns and the result of :func:`plain`.

    Raises ``ValueError``, ``KeyError``, ``TypeError`` or ``IndexError`` for invalid input.
    """
    table = HostTable()
    ids = [ProviderId(int(each)) for each in columns[f"{HOSTS}/fact/provider_ids"]]
    names: Sequence[str] = state["names"]
    if len(names) != len(ids) or len(set(names)) != len(ids) or len(set(ids)) != len(ids):
        raise ValueError("the lists of hosts differ in length or have duplicates")
    if not all(isinstance(each, str) for each in (*names, *state["zones"])):
        raise ValueError("the name of a host or zone is not a string")
    for zone in state["zones"]:
        table.zone_code(zone)
    _hear(table, state["agents"], columns[AGENTS])
    table.ensure_rows(zip(ids, names, strict=True))
    _fill(HOSTS, table, columns)
    table.bookmark = Bookmark(ChangeId(int(state["change_id"])), None)
    table.class_ids.update({name: ClassId(each) for name, each in state["class_ids"].items()})
    facts = state["capabilities"]
    for index, provider_id in enumerate(ids):
        mine = facts["values"][facts["codes"][index]]
        table.set_capabilities(table.index_of[provider_id], mine)
    _set_aggregates(table, state["aggregates"])
    _set_dedications(table, state["pclouds"], state["pcloud_names"])
    _set_residents(table, state["residents"])
    _set_pools(table, columns, state)
    _check(table)
    return table


def _hear(table: HostTable, agents: Sequence[str], heard_s: Column) -> None:
    if len(agents) != len(heard_s) or len(set(agents)) != len(agents):
        raise ValueError("the lists of agents differ in length or have duplicates")
    _demand_numbers("fact", AGENTS, heard_s)
    for agent_id, moment_s in zip(agents, heard_s, strict=True):
        table.set_heartbeat(AgentId(agent_id), float(moment_s))


def _fill(label: str, table: AmountTable, columns: Mapping[str, Column]) -> None:
    """Set all columns of a table. Raise ``ValueError`` if a column of a fact is missing."""
    facts = {WRITTEN_AS.get(name, name): name for kind, name in table.columns() if kind == "fact"}
    _demand_whole_classes(label, columns)
    for path, values in columns.items():
        mine, _, rest = path.partition("/")
        if mine != label:
            continue
        kind, _, name = rest.partition("/")
        _demand_numbers(kind, path, values)
        if kind == "fact" and name not in facts:
            raise ValueError(f"there is no column {kind} {name}")
        table.set_column(kind, facts.pop(name) if kind == "fact" else name, values)
    if facts:
        raise ValueError(f"there is no column {', '.join(sorted(facts))}")


def _demand_whole_classes(label: str, columns: Mapping[str, Column]) -> None:
    """Raise ``ValueError`` if a class has some columns, but lacks others.

    A missing column would be read as zeros.
    """
    starts = [f"{label}/{kind}/" for kind in KINDS]
    names = {
        path.removeprefix(start) for start in starts for path in columns if path.startswith(start)
    }
    for name in sorted(names):
        for kind in KINDS:
            if f"{label}/{kind}/{name}" not in columns:
                raise ValueError(f"there is no column {label}/{kind}/{name}")


def _demand_numbers(kind: str, path: str, values: Column) -> None:
    if values.dtype.kind != "f":
        return
    # Times may be infinite. Amounts must be finite.
    is_bad = np.isnan(values) if kind == "fact" else ~np.isfinite(values)
    if is_bad.any():
        raise ValueError(f"the column {path} has values that are not numbers")


def _set_aggregates(table: HostTable, sets: Sequence[Mapping[str, Any]]) -> None:
    codes = table.aggregate_codes.copy()
    if not set(np.unique(codes).tolist()) <= {int(each["code"]) for each in sets}:
        raise ValueError("a host has an undefined aggregate code")
    for each in sets:
        ids = [int(one) for one in each["ids"]]
        for one, metadata in zip(ids, each["metadata"], strict=True):
            table.aggregates.set_metadata(one, metadata)
        table.aggregate_codes[codes == int(each["code"])] = table.aggregates.code(frozenset(ids))


def _set_dedications(table: HostTable, facts: Sequence[Any], names: Sequence[str]) -> None:
    codes, is_open = table.dedication_codes.copy(), table.is_dedication_open.copy()
    numbers = {GENERAL: GENERAL, POOLED: POOLED}
    for code, uuid, projects, taken_in in facts:
        numbers[int(code)] = table.dedications.code(str(uuid))
        table.dedications.set_facts(str(uuid), projects, taken_in)
    if len(names) != table.host_count or not set(codes.tolist()) <= numbers.keys():
        raise ValueError("a host has an undefined pcloud code")
    for index, name in enumerate(names):
        number = numbers[int(codes[index])]
        table.dedicate(HostIndex(index), number, str(name), is_open=bool(is_open[index]))


def _set_residents(table: HostTable, residents: Sequence[Any] | None) -> None:
    table.knows_servers = residents is not None
    for provider_id, counts in residents or ():
        table.residents.replace(ProviderId(int(provider_id)), counts)


def _set_pools(table: HostTable, columns: Mapping[str, Column], state: Mapping[str, Any]) -> None:
    pools, plain_pools = table.pools, state["pools"]
    pools.add_rows(ProviderId(int(each)) for each in columns[f"{POOLS}/fact/provider_ids"])
    _fill(POOLS, pools, columns)
    uuids, aggregates = plain_pools["uuids"], plain_pools["aggregates"]
    pools.class_ids.update({name: ClassId(each) for name, each in plain_pools["class_ids"].items()})
    if not len(uuids) == len(aggregates) == pools.row_count:
        raise ValueError("the lists of pools differ in length")
    pools.uuids[:] = [ProviderUuid(each) for each in uuids]
    pools.aggregates[:] = [frozenset(each) for each in aggregates]
    numbers = np.array(
        [pools.code(frozenset(each)) for each in state["memberships"]], dtype=np.int32
    )
    table.membership_codes[:] = numbers[table.membership_codes]
    table.knows_memberships = bool(state["knows_memberships"])
    for name in pools.free:
        table.ensure_absent_class(name)
    pools.regroup()


def _check(table: HostTable) -> None:
    """Raise ``ValueError`` if a code in the table is undefined. A decision would fail later."""
    bounds = (
        ("zone", table.zone_codes, len(table.zones)),
        ("agent", table.agent_codes, len(table.agent_ids)),
    )
    for noun, codes, count in bounds:
        if table.host_count and not (0 <= int(codes.min()) <= int(codes.max()) < count):
            raise ValueError(f"a host has an undefined {noun} code")
