"""Parses trees of zones from the command line and from TOML files."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.numerals import whole_of
from innkeeper.entrypoints.simulator.hosts import file_of
from innkeeper.entrypoints.simulator.traces.text_rows import lines_of
from innkeeper.scheduling.simulation.zone_trees import (
    DEPTH_MAX,
    ROUND_ROBIN,
    SimulatedTree,
    SimulatedZone,
    uniform,
)

WIDTHS = re.compile(r"\d+(x\d+)*", re.ASCII)
KEYS = {"name", "share", "weight_offset", "weight_scale", "zones", "driver", "filters", "weighers"}
ROOT_KEYS = {"name", "share", "zones", "driver", "filters", "weighers"}
"""The keys of the root. It has no parent, so it has neither offset nor scale."""
CHANGES = ("driver", "filters", "weighers")
NUMBER_MAX = 1e9


def parse(texts: Sequence[str], deal: str = ROUND_ROBIN) -> tuple[SimulatedTree, ...]:
    """Parse the ``--tree`` options. Raises :class:`Invalid` if two trees have the same name."""
    found = tuple(_tree(text, deal) for text in texts)
    names = [tree.name for tree in found]
    if len(set(names)) < len(names):
        raise Invalid(f"Two trees have the same name: {', '.join(names)}.")
    return found


def _tree(text: str, deal: str) -> SimulatedTree:
    if WIDTHS.fullmatch(text):
        widths = [whole_of(part) or 0 for part in text.split("x")]
        # A tree of one zone has no child zones.
        return uniform(text, [] if widths == [1] else widths, deal)
    path = file_of(text)
    if path is None:
        raise Invalid(
            f"Write a tree as numbers of child zones, such as 20 or 10x10, or as the name of a "
            f"TOML file, not {text!r}."
        )
    return SimulatedTree(path.stem, _root_of(path), deal)


def _root_of(path: Path) -> SimulatedZone:
    text = "\n".join(line for _, line in lines_of(path))
    try:
        read = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{path.name} is not valid TOML: {error}.") from error
    return _zone(f"{path.name}, the root", {"name": "root", **read}, ROOT_KEYS, 0)


def _zone(where: str, table: Any, keys: set[str], level: int) -> SimulatedZone:
    if not isinstance(table, Mapping):
        raise Invalid(f"{where} is not a table.")
    unknown = sorted(table.keys() - keys)
    if unknown:
        raise Invalid(f"{where} has unknown keys: {', '.join(unknown)}.")
    if level > DEPTH_MAX:
        raise Invalid(f"{where}: a tree has at most {DEPTH_MAX} levels below its root.")
    name = table.get("name")
    if not isinstance(name, str) or not name.strip():
        raise Invalid(f"{where} needs a name.")
    below = table.get("zones", [])
    if not isinstance(below, list):
        raise Invalid(f"{where}: zones must be tables [[zones]].")
    zones = tuple(
        _zone(f"{where}, zone {number}", each, KEYS, level + 1)
        for number, each in enumerate(below, start=1)
    )
    scale = _number(where, table, "weight_scale", 1.0)
    if scale <= 0:
        raise Invalid(f"{where}: weight_scale must be above 0.")
    share = _number(where, table, "share", 0.0 if zones else 1.0)
    if share < 0:
        raise Invalid(f"{where}: share must not be negative.")
    offset = _number(where, table, "weight_offset", 0.0)
    return SimulatedZone(name, share, offset, scale, zones, _changes(where, table))


def _number(where: str, table: Mapping[str, Any], key: str, default: float) -> float:
    value = table.get(key, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or abs(value) > NUMBER_MAX:
        raise Invalid(f"{where}: {key} must be a number up to {NUMBER_MAX:.0f}, not {value!r}.")
    return float(value)


def _changes(where: str, table: Mapping[str, Any]) -> dict[str, str]:
    found = {key: table[key] for key in CHANGES if key in table}
    for key, text in found.items():
        if not isinstance(text, str):
            raise Invalid(f"{where}: {key} must be a text, as on the command line.")
    return found
