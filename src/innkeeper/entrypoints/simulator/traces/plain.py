"""Reads custom traces, which are CSV files of servers.

The column ``arrival_s`` and at least one column with amounts are required. Amounts are ``vcpus``,
``memory_mb``, ``disk_gb`` or any resource class, such as ``CUSTOM_FPGA``.

Optional columns are ``lifetime_s``, ``count``, ``batch``, ``project`` and ``flavor``. The lifetime
is empty if a server stays. Rows with the same batch and arrival are one request. The flavor is a
name for the amounts.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.simulator.traces.text_rows import (
    SERVERS_MAX,
    TextRow,
    header_of,
    rows_of,
)
from innkeeper.scheduling.simulation.workload import NEVER, ServerShape, Workload, ordered

USUAL = {"vcpus": "VCPU", "memory_mb": "MEMORY_MB", "disk_gb": "DISK_GB"}
CLASS = re.compile(r"[A-Z][A-Z0-9_]*")
OTHERS = frozenset({"lifetime_s", "count", "batch", "project", "flavor"})


def is_one(header: tuple[str, ...]) -> bool:
    """Return whether a table with this header is a plain trace."""
    return "arrival_s" in header


def load(path: Path) -> Workload:
    """Read the servers. The rows may be in any order."""
    needs = _needs(path)
    shapes: dict[tuple[object, ...], int] = {}
    found: list[ServerShape] = []
    projects: dict[str, int] = {}
    batches: dict[object, int] = {}
    table: list[tuple[float, float, int, int, int]] = []
    counts: list[int] = []
    total = 0
    for row in rows_of(path, ("arrival_s",)):
        amounts, flavor = _amounts(row, needs), row.text("flavor")
        key = (*amounts.items(), flavor)
        if key not in shapes:
            shapes[key] = len(found)
            found.append(ServerShape(flavor or _name(amounts), amounts))
        arrival = row.needed("arrival_s")
        lifetime = row.number("lifetime_s", 0)
        counts.append(row.whole("count", 1, 1))
        total += counts[-1]
        if total > SERVERS_MAX:
            raise row.error(f"more than {SERVERS_MAX} servers")
        # A row without a batch is a separate batch.
        batch = row.text("batch") or len(batches)
        table.append(
            (
                arrival,
                NEVER if lifetime is None else arrival + lifetime,
                shapes[key],
                batches.setdefault(batch, len(batches)),
                projects.setdefault(row.text("project") or "trace", len(projects)),
            )
        )
    if not table:
        raise Invalid(f"{path.name} contains no servers.")
    cells = np.repeat(np.array(table, dtype=float), counts, axis=0)
    whole = cells[:, 2:].astype(np.int64)
    arrivals, leavings, columns = ordered(
        cells[:, 0], cells[:, 1], whole[:, 0], whole[:, 1], whole[:, 2]
    )
    return Workload(
        path.name,
        tuple(found),
        arrivals,
        leavings,
        columns[0],
        columns[1],
        tuple(projects),
        columns[2],
    )


def _needs(path: Path) -> dict[str, str]:
    """Return the resource class of each column with amounts."""
    needs = {}
    for column in header_of(path):
        if column in USUAL:
            needs[column] = USUAL[column]
        elif CLASS.fullmatch(column):
            needs[column] = column
        elif column not in OTHERS and column != "arrival_s":
            raise Invalid(f"{path.name} has an unknown column {column!r}.")
    if not needs:
        raise Invalid(f"{path.name} has no amounts for its servers, such as a column vcpus.")
    return needs


def _amounts(row: TextRow, needs: dict[str, str]) -> dict[str, int]:
    wanted = {name: row.whole(column, default=0) for column, name in needs.items()}
    found = {name: amount for name, amount in wanted.items() if amount}
    if not found:
        raise row.error("the server requests no resources")
    return found


def _name(amounts: dict[str, int]) -> str:
    letters = {"VCPU": "c", "MEMORY_MB": "m", "DISK_GB": "d"}
    return "".join(f"{amount}{letters.get(name, ' ' + name)}" for name, amount in amounts.items())
