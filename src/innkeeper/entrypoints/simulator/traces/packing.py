"""Reads the Azure trace for packing of 2020, a SQLite file with the tables ``vm`` and ``vmType``.

Amounts are fractions of a machine. They are converted to millionths of a host named ``machine``.
The fractions of a type of server depend on the kind of machine, so only one kind is simulated.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.simulator.traces.text_rows import SERVERS_MAX, open_database
from innkeeper.scheduling.simulation.workload import NEVER, ServerShape, Workload, ordered

MILLIONTHS = 1_000_000
DAY_S = 86_400.0
CLASSES = {
    "core": "VCPU",
    "memory": "MEMORY_MB",
    "hdd": "DISK_GB",
    "ssd": "CUSTOM_SSD",
    "nic": "CUSTOM_NIC",
}
PARTS = {name: MILLIONTHS for name in CLASSES.values()}
COLUMNS = {
    "vm": {"vmId", "tenantId", "vmTypeId", "starttime", "endtime"},
    "vmType": {"vmTypeId", "machineId", *CLASSES},
}
KINDS = (
    "SELECT t.machineId, COUNT(*) AS servers FROM vm JOIN vmType t USING (vmTypeId) "
    "GROUP BY t.machineId ORDER BY servers DESC, t.machineId"
)
TYPES = "SELECT vmTypeId, core, memory, hdd, ssd, nic FROM vmType WHERE machineId = ?"
SERVERS = (
    "SELECT tenantId, vmTypeId, starttime, endtime FROM vm "
    "ORDER BY starttime, tenantId, vmTypeId, vmId"
)


def load(path: Path, machine: str | None) -> Workload:
    """Read the servers for one kind of machine. The default is the kind that most servers fit."""
    database = open_database(path)
    try:
        _check(path, database)
        kind, note = _kind(path, database, machine)
        return _read(path, database, kind, note)
    except sqlite3.Error as error:
        raise Invalid(f"Cannot read {path.name}: {error}.") from error
    finally:
        database.close()


def _check(path: Path, database: sqlite3.Connection) -> None:
    for table, needed in COLUMNS.items():
        there = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        missing = sorted(needed - there)
        if missing:
            raise Invalid(
                f"{path.name} is not a packing trace: table {table} lacks {', '.join(missing)}."
            )


def _kind(path: Path, database: sqlite3.Connection, requested: str | None) -> tuple[Any, str]:
    counts = {str(kind): (kind, servers) for kind, servers in database.execute(KINDS)}
    if not counts:
        raise Invalid(f"{path.name} has no server that fits any machine.")
    name = next(iter(counts)) if requested is None else requested
    if name not in counts:
        some = ", ".join(list(counts)[:10])
        raise Invalid(
            f"{path.name} has no machine type {requested!r}; "
            f"the types that most servers fit are {some}."
        )
    kind, servers = counts[name]
    (whole,) = database.execute("SELECT COUNT(*) FROM vm").fetchone()
    left_out = whole - servers
    return kind, f"on machines of kind {name}; {left_out} of {whole} servers do not run on it"


def _shape(path: Path, row: Sequence[Any]) -> ServerShape:
    amounts: dict[str, int] = {}
    for (column, class_name), value in zip(CLASSES.items(), row[1:], strict=True):
        if value is None or value == 0:
            continue
        if not isinstance(value, int | float) or not 0 < value <= MILLIONTHS:
            raise Invalid(f"{path.name}: type {row[0]} takes {value!r} of {column}.")
        amounts[class_name] = max(1, round(value * MILLIONTHS))
    return ServerShape(f"type {row[0]}", amounts)


def _read(path: Path, database: sqlite3.Connection, kind: Any, note: str) -> Workload:
    shapes: list[ServerShape] = []
    codes: dict[Any, int] = {}
    for row in database.execute(TYPES, (kind,)):
        if row[0] in codes:
            raise Invalid(f"{path.name} has type {row[0]} twice on machine {kind}.")
        codes[row[0]] = len(shapes)
        shapes.append(_shape(path, row))
    projects: dict[Any, int] = {}
    rows: list[tuple[float, float, int, int]] = []
    for owner_id, type_id, started, ended in database.execute(SERVERS):
        if type_id not in codes:
            continue
        if not isinstance(started, int | float):
            raise Invalid(f"{path.name} has a server that starts at {started!r}.")
        if ended is not None and (not isinstance(ended, int | float) or ended < started):
            raise Invalid(
                f"{path.name} has a server that starts at {started:g} and ends at {ended!r}."
            )
        owner = projects.setdefault(owner_id, len(projects))
        rows.append((started, NEVER if ended is None else ended, codes[type_id], owner))
        if len(rows) > SERVERS_MAX:
            raise Invalid(f"{path.name} has more than {SERVERS_MAX} servers.")
    table = np.array(rows, dtype=float)
    types, owners = table[:, 2].astype(np.int64), table[:, 3].astype(np.int64)
    # Servers of one owner that start at the same time count as one request.
    is_new = np.ones(len(rows), dtype=np.int64)
    is_new[1:] = (np.diff(table[:, 0]) != 0) | (np.diff(owners) != 0)
    arrivals, leavings, columns = ordered(
        table[:, 0] * DAY_S, table[:, 1] * DAY_S, types, np.cumsum(is_new), owners
    )
    return Workload(
        path.name,
        tuple(shapes),
        arrivals,
        leavings,
        columns[0],
        columns[1],
        tuple(f"project-{number}" for number in range(len(projects))),
        columns[2],
        PARTS,
        (note,),
    )
