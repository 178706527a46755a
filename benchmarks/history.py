"""Records runs, and finds losses since the last run on a machine of the same kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.machine import Machine

FILE = Path(__file__).parent / "history.jsonl"
LOSS_MAX = 0.10
"""A figure that is worse by more than this is reported as a loss."""
WATCHED_ENDINGS = (".rate", ".median", ".of_1000", ".read", ".ratio", ".after", ".path")
"""Endings of the names of figures to compare. The 99th percentiles and start times vary too much
between runs."""


def record(machine: Machine, figures: Sequence[Figure]) -> dict[str, Any]:
    """Return a run as one record of the file."""
    return {
        "at": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": machine.commit,
        "kind": machine.kind,
        "flush_us": round(machine.flush_us),
        "figures": {each.name: float(f"{each.value:.4g}") for each in figures},
    }


def append(line: dict[str, Any], file: Path = FILE) -> None:
    """Append a record."""
    with file.open("a", encoding="utf-8") as kept:
        kept.write(json.dumps(line, sort_keys=True) + "\n")


def last(kind: str, file: Path = FILE) -> dict[str, Any] | None:
    """Return the newest record of a machine of this kind, with the newest value of each figure.

    Some records have only a part of the figures. ``commits`` has the commit at which each figure
    was measured.
    """
    if not file.exists():
        return None
    lines = file.read_text(encoding="utf-8").splitlines()
    records: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
    mine = [each for each in records if each["kind"] == kind]
    if not mine:
        return None
    figures = {name: value for each in mine for name, value in each["figures"].items()}
    commits = {name: each["commit"] for each in mine for name in each["figures"]}
    return {**mine[-1], "figures": figures, "commits": commits}


def losses(before: dict[str, Any], figures: Sequence[Figure]) -> Iterator[str]:
    """Yield one sentence for each watched figure that lost more than the allowed share."""
    for each in figures:
        old = before["figures"].get(each.name)
        if old is None or not each.name.endswith(WATCHED_ENDINGS):
            continue
        loss = each.loss(old)
        if loss > LOSS_MAX:
            yield (
                f"{each.name}: {each.value:.4g} {each.unit}, was {old:.4g} {each.unit} at "
                f"{before['commits'][each.name]}: {loss:.0%} worse"
            )
