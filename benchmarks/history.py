"""Records of earlier runs, and the losses since the last one on a machine of the same kind."""

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
WATCHED_ENDINGS = (".rate", ".median", ".of_1000", ".read", ".ratio", ".after")
"""Tails and start times vary too much from run to run for a comparison."""


def record(machine: Machine, figures: Sequence[Figure]) -> dict[str, Any]:
    """A run as one line of the file."""
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
    """The newest record of a machine of this kind."""
    if not file.exists():
        return None
    lines = file.read_text(encoding="utf-8").splitlines()
    records: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
    mine = [each for each in records if each["kind"] == kind]
    return mine[-1] if mine else None


def losses(before: dict[str, Any], figures: Sequence[Figure]) -> Iterator[str]:
    """One sentence for each watched figure that lost more than the allowed share."""
    for each in figures:
        old = before["figures"].get(each.name)
        if old is None or not each.name.endswith(WATCHED_ENDINGS):
            continue
        loss = each.loss(old)
        if loss > LOSS_MAX:
            yield (
                f"{each.name}: {each.value:.4g} {each.unit}, was {old:.4g} {each.unit} at "
                f"{before['commit']}: {loss:.0%} worse"
            )
