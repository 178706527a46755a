"""Reads hosts from a file. The file may be TOML, CSV, the nodes of the GPU trace or a recording."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.simulator import recorded_hosts
from innkeeper.entrypoints.simulator.hosts import CLASS, RATIOS, Draft, check, shape_amounts
from innkeeper.entrypoints.simulator.traces.gpu_pods import MODEL, THOUSANDTHS
from innkeeper.entrypoints.simulator.traces.plain import USUAL
from innkeeper.entrypoints.simulator.traces.text_rows import (
    TextRow,
    head_of,
    header_of,
    lines_of,
    rows_of,
)
from innkeeper.scheduling.simulation.fleets import HOSTS_MAX, HostGroup, HostShape

KEYS = {"shape", "count", "name", "zone", "traits", "capabilities", "ratios", "resources"}
CELLS = {"count", "name", "zone", "traits", *RATIOS}

MB_PER_GB = 1024
FACT_MAX = 2**53
SHOWN_MAX = 80
"""The maximum length of a value in an error."""
NODES = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


def load(path: Path) -> tuple[HostGroup, ...]:
    """Read the host groups of a file. Equal hosts of the GPU trace become one group."""
    if recorded_hosts.is_one(head_of(path)):
        groups = recorded_hosts.load(path)
    elif path.suffix == ".toml":
        groups = _of_toml(path)
    elif set(NODES[1:4]) <= set(header_of(path)):
        groups = _of_nodes(path)
    else:
        groups = _of_rows(path)
    if not groups:
        raise Invalid(f"{path.name} contains no hosts.")
    check(groups)
    return groups


def _of_toml(path: Path) -> tuple[HostGroup, ...]:
    text = "\n".join(line for _, line in lines_of(path))
    try:
        read = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # A syntax error or a number with thousands of digits is a ValueError.
        raise Invalid(f"{path.name} is not valid TOML: {error}.") from error
    tables = read.get("hosts")
    if read.keys() != {"hosts"} or not isinstance(tables, list):
        raise Invalid(f"{path.name} must have tables [[hosts]] and nothing else.")
    return tuple(
        _of_table(f"{path.name}, [[hosts]] number {number}", table)
        for number, table in enumerate(tables, start=1)
    )


def _of_table(where: str, table: Any) -> HostGroup:
    if not isinstance(table, Mapping):
        raise Invalid(f"{where} is not a table.")
    unknown = sorted(table.keys() - KEYS - USUAL.keys())
    if unknown:
        raise Invalid(f"{where} has unknown keys: {', '.join(unknown)}.")
    count = _typed(where, table, "count", int, 1)
    if not 1 <= count <= HOSTS_MAX:
        raise Invalid(f"{where}: count must be a whole number from 1 to {HOSTS_MAX}.")
    shape = _typed(where, table, "shape", str, "")
    draft = Draft(_typed(where, table, "name", str, shape or where))
    try:
        draft.totals = shape_amounts(shape) if shape else {}
        for key, class_name in USUAL.items():
            if key in table:
                draft.total(class_name, _typed(where, table, key, int, 0))
        for class_name, total in _typed(where, table, "resources", dict, {}).items():
            draft.total(class_name, _checked(where, class_name, total, int))
        for class_name, ratio in _typed(where, table, "ratios", dict, {}).items():
            draft.ratio(class_name, _checked(where, class_name, ratio, (int, float)))
        draft.zone = _typed(where, table, "zone", str, "nova")
        traits = _typed(where, table, "traits", list, [])
        draft.traits = [_checked(where, "traits", each, str) for each in traits]
        for name, fact in _typed(where, table, "capabilities", dict, {}).items():
            draft.capabilities[name] = _capability(where, name, fact)
        return HostGroup(draft.shape(), count)
    except Invalid as error:
        message = error.message
        raise Invalid(message if message.startswith(where) else f"{where}: {message}") from error


def _typed(where: str, table: Mapping[str, Any], key: str, kind: Any, default: Any) -> Any:
    return _checked(where, key, table.get(key, default), kind)


def _checked(where: str, key: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Invalid(f"{where}: {key} is {_shown(value)}, which has the wrong type.")
    return value


def _capability(where: str, name: str, fact: Any) -> Any:
    """Return a capability. Raises :class:`Invalid` for null and for numbers that are too large."""
    if isinstance(fact, Mapping):
        return {key: _capability(where, f"{name}.{key}", each) for key, each in fact.items()}
    if isinstance(fact, list):
        return [_capability(where, name, each) for each in fact]
    is_number = isinstance(fact, int | float) and abs(fact) <= FACT_MAX
    if not is_number and not isinstance(fact, str):
        raise Invalid(
            f"{where}: the capability {name} is {_shown(fact)}; it must be a text, true or "
            f"false, or a number between -{FACT_MAX} and {FACT_MAX}."
        )
    return fact


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."


def _of_rows(path: Path) -> tuple[HostGroup, ...]:
    header = header_of(path)
    unknown = [
        name
        for name in header
        if name not in USUAL and not CLASS.fullmatch(name) and name not in CELLS
    ]
    if unknown or not any(name in USUAL for name in header):
        what = f"has unknown columns: {', '.join(unknown)}" if unknown else "has no amounts"
        raise Invalid(f"{path.name} {what}; give amounts as vcpus, memory_mb and disk_gb.")
    return tuple(_of_row(row, header) for row in rows_of(path, ()))


def _of_row(row: TextRow, header: Sequence[str]) -> HostGroup:
    draft = Draft(row.text("name") or f"line {row.line}")
    try:
        for column in header:
            if column in USUAL or CLASS.fullmatch(column):
                amount = row.whole(column, default=0)
                if amount:
                    draft.total(USUAL.get(column, column), amount)
        for column, class_name in RATIOS.items():
            ratio = row.number(column, 0)
            if ratio is not None:
                draft.ratio(class_name, ratio)
        draft.zone = row.text("zone") or "nova"
        draft.traits = (row.text("traits") or "").split()
        return HostGroup(draft.shape(), row.whole("count", 1, 1))
    except Invalid as error:
        if error.message.startswith(row.file):
            raise
        raise row.error(error.message.removesuffix(".")) from error


def _of_nodes(path: Path) -> tuple[HostGroup, ...]:
    counts: dict[tuple[int, int, int, str], int] = {}
    for row in rows_of(path, NODES):
        key = (
            row.whole("cpu_milli", 1) // THOUSANDTHS,
            row.whole("memory_mib", 1),
            row.whole("gpu", default=0),
            row.text("model") or "",
        )
        counts[key] = counts.get(key, 0) + 1
    return tuple(HostGroup(_node(*key), count) for key, count in counts.items())


def _node(cores: int, memory_mb: int, gpus: int, model: str) -> HostShape:
    draft = Draft(f"{cores}c{memory_mb / MB_PER_GB:g}g" + (f"+{gpus} {model}" if gpus else ""))
    draft.total("VCPU", cores)
    draft.total("MEMORY_MB", memory_mb)
    if gpus:
        draft.total("PGPU", gpus)
    if model:
        draft.capabilities[MODEL] = model
    return draft.shape()
