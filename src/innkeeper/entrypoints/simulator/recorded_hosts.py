"""Reads the hosts of a recorded decision, without their servers.

Each host keeps its capacity, zone, traits and capabilities, but not its aggregates and shared
pools. Hosts that are closed to new servers are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import HostIndex
from innkeeper.scheduling import recordings
from innkeeper.scheduling.simulation.fleets import HostGroup, HostShape
from innkeeper.snapshot.columns import HostTable

HEAD = b"PK\x03\x04"
MB_PER_GB = 1024


def is_one(head: bytes) -> bool:
    """Return whether a file that starts with ``head`` may be a recording."""
    return head.startswith(HEAD)


def load(path: Path) -> tuple[HostGroup, ...]:
    """Read the hosts. Equal hosts become one group."""
    try:
        recordings.check_file_size(path.stat().st_size)
        packed = path.read_bytes()
    except OSError as error:
        raise Invalid(f"Cannot read {path}: {error.strerror or error}.") from error
    table = recordings.read(packed).table
    counts: dict[str, int] = {}
    shapes: dict[str, HostShape] = {}
    for index in range(table.host_count):
        if not table.is_open[index]:
            continue
        shape = _shape(table, HostIndex(index))
        if not shape.totals:
            continue
        key = json.dumps(
            [shape.totals, shape.ratios, shape.zone, shape.traits, dict(shape.capabilities)],
            sort_keys=True,
        )
        shapes.setdefault(key, shape)
        counts[key] = counts.get(key, 0) + 1
    return tuple(HostGroup(shapes[key], count) for key, count in counts.items())


def _shape(table: HostTable, index: HostIndex) -> HostShape:
    totals: dict[str, int] = {}
    ratios: dict[str, float] = {}
    for name in sorted(table.free):
        # The capacity is the sum of the free and the used amount, while max_unit limits a single
        # allocation.
        capacity = int(table.free[name][index] + table.used[name][index])
        total = int(min(capacity, table.max_units[name][index]))
        if total > 0:
            totals[name] = total
            ratios[name] = capacity / total
    zones = {code: zone for zone, code in table.zones.items()}
    return HostShape(
        _name(totals),
        totals,
        {name: ratio for name, ratio in ratios.items() if ratio != 1.0},
        zones[int(table.zone_codes[index])],
        tuple(sorted(name for name, column in table.traits.items() if column[index])),
        table.capabilities_of(index),
    )


def _name(totals: dict[str, int]) -> str:
    cores, memory_mb = totals.get("VCPU", 0), totals.get("MEMORY_MB", 0)
    return f"{cores}c{memory_mb / MB_PER_GB:g}g"
