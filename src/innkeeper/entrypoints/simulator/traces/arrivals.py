"""Reads arrival traces, which have a letter for each server, and a line for each 300 seconds.

``|`` separates batches in a line. The file ``NAME.txt`` has the arrivals, and
``NAME.c<second>.txt`` has the durations in the same order. ``*flav_map*.txt`` has the meaning of
the letters, and ``*interval_map*.txt`` has the bins of the durations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.simulator.traces.text_rows import HEAD_BYTES, head_of, lines_of
from innkeeper.scheduling.simulation.workload import NEVER, ServerShape, Workload, ordered

MB_PER_GB = 1024
LIFETIME_MIN_S = 150.0
"""The lifetime of servers in the bin of duration 0: half of the 300 seconds of a bin."""
LINE = re.compile(r"(\d{1,15}) (\S.*)", re.ASCII)
HEAD = re.compile(rb"\d+ (?:[A-Za-z]|\|)(?:,|\r?\n|$)")
DURATIONS_NAME = re.compile(r".*\.c\d+\.txt")
FLAVOR = re.compile(r"(\d{1,9}(?:\.\d+)?),(\d{1,9}(?:\.\d+)?) ([A-Za-z])", re.ASCII)
INTERVAL = re.compile(r"(\d{1,15}) (\d{1,15})", re.ASCII)
DURATION = re.compile(r"([UC])(\d{1,15})", re.ASCII)
BAR = "|"


def is_one(head: bytes) -> bool:
    """Return whether a file that starts with ``head`` is an arrival trace."""
    return HEAD.match(head) is not None


def among(folder: Path) -> Path:
    """Return the arrival trace in a folder. Raises :class:`Invalid` unless there is exactly one."""
    found = [
        path
        for path in sorted(folder.glob("*.txt"))
        if not DURATIONS_NAME.fullmatch(path.name) and is_one(head_of(path)[:HEAD_BYTES])
    ]
    return _only(found, f"{folder} must contain one arrival trace")


def load(path: Path) -> Workload:
    """Read the trace and the three files next to it."""
    shapes = _shapes(_beside(path, "*flav_map*.txt"))
    middles = _middles(_beside(path, "*interval_map*.txt"))
    durations = _beside(path, f"{path.stem}.c*.txt")
    codes = {shape.name: code for code, shape in enumerate(shapes)}
    rows: list[tuple[float, float, int, int]] = []
    batch = 0
    for arrived, lived in _side_by_side(path, durations):
        if len(arrived.words) != len(lived.words):
            raise arrived.error(f"as many entries as in the same line of {durations.name}")
        for letter, duration in zip(arrived.words, lived.words, strict=True):
            if letter == BAR:
                batch += 1
                continue
            if letter not in codes:
                raise arrived.error(f"only shapes of the flavor map, which lacks {letter!r}")
            lifetime = _lifetime(lived, duration, middles)
            rows.append((arrived.second, arrived.second + lifetime, codes[letter], batch))
        # The end of a line also ends a batch.
        batch += 1
    if not rows:
        raise Invalid(f"{path.name} contains no servers.")
    table = np.array(rows)
    whole = table[:, 2:].astype(np.int64)
    arrivals, leavings, columns = ordered(table[:, 0], table[:, 1], whole[:, 0], whole[:, 1])
    used = np.flatnonzero(np.bincount(columns[0], minlength=len(shapes)))
    return Workload(
        path.name,
        tuple(_renamed(shapes[code]) for code in used),
        arrivals,
        leavings,
        np.searchsorted(used, columns[0]),
        columns[1],
    )


def _renamed(shape: ServerShape) -> ServerShape:
    vcpus, memory_mb = shape.amounts["VCPU"], shape.amounts["MEMORY_MB"]
    return ServerShape(f"{vcpus}c{memory_mb / MB_PER_GB:g}g", shape.amounts)


@dataclass(frozen=True, slots=True)
class _Line:
    file: str
    number: int
    second: float
    words: list[str]

    def error(self, expected: str) -> Invalid:
        return Invalid(f"{self.file}, line {self.number}: expected {expected}.")


def _lines(path: Path) -> Iterator[_Line]:
    for number, text in lines_of(path):
        match = LINE.fullmatch(text)
        if match is None:
            raise Invalid(
                f"{path.name}, line {number}: expected a second, a space and a list with commas."
            )
        words = [word for word in match[2].split(",") if word]
        yield _Line(path.name, number, float(match[1]), words)


def _side_by_side(path: Path, durations: Path) -> Iterator[tuple[_Line, _Line]]:
    others = _lines(durations)
    for arrived in _lines(path):
        lived = next(others, None)
        if lived is None or lived.second != arrived.second:
            raise arrived.error(f"a line for the same second in {durations.name}")
        yield arrived, lived


def _beside(path: Path, pattern: str) -> Path:
    found = sorted(path.parent.glob(pattern))
    return _only(found, f"The folder of {path.name} must contain one {pattern}")


def _only(found: list[Path], requirement: str) -> Path:
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise Invalid(f"{requirement}; found: {names}.")
    return found[0]


def _shapes(path: Path) -> tuple[ServerShape, ...]:
    shapes = []
    for number, text in lines_of(path):
        match = FLAVOR.fullmatch(text)
        if match is None:
            raise Invalid(f"{path.name}, line {number}: expected CORES,GIGABYTES LETTER.")
        memory_mb = round(float(match[2]) * MB_PER_GB)
        shapes.append(
            ServerShape(match[3], {"VCPU": round(float(match[1])), "MEMORY_MB": memory_mb})
        )
    if len({shape.name for shape in shapes}) < len(shapes):
        raise Invalid(f"{path.name} defines one letter twice.")
    return tuple(shapes)


def _middles(path: Path) -> dict[int, float]:
    """Return the duration in the middle of each bin."""
    bounds: dict[int, tuple[float, float]] = {}
    for number, text in lines_of(path):
        match = INTERVAL.fullmatch(text)
        if match is None:
            raise Invalid(f"{path.name}, line {number}: expected SECONDS BIN.")
        seconds, code = float(match[1]), int(match[2])
        least, greatest = bounds.get(code, (seconds, seconds))
        bounds[code] = (min(least, seconds), max(greatest, seconds))
    return {code: sum(both) / 2 for code, both in bounds.items()}


def _lifetime(line: _Line, text: str, middles: dict[int, float]) -> float:
    match = DURATION.fullmatch(text)
    if match is None or int(match[2]) not in middles:
        raise line.error(f"U or C with a bin of the interval map, not {text!r}")
    if match[1] == "C":
        # C means censored. The server was still running when the trace ended.
        return NEVER
    return max(LIFETIME_MIN_S, middles[int(match[2])])
