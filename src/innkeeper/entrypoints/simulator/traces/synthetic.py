"""Generates traces that resemble a real trace, from ``synthetic:DAYS`` or ``synthetic:DAYS:SEED``.

``benchmarks.calibrate`` derived the numbers in ``calibration.toml`` from the arrival trace. The
generator draws these values at random:

- the number of batches in each bin of five minutes, by the hour of the day, with the trace's
  spread;
- the number of servers in each batch, and one shape for the batch, by its size;
- the lifetime of a batch's first server, by its shape;
- for each other server of the batch, the first server's lifetime or a lifetime of its own.

Batches of several shapes, owners, and correlations between bins beyond the hour are not modeled.

Always true: the same days, seed and numbers result in the same trace.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.errors import Invalid
from innkeeper.domain.numerals import number_of, whole_of
from innkeeper.scheduling.simulation.workload import NEVER, ServerShape, Workload, ordered

PREFIX = "synthetic:"
DAYS_MAX = 60.0
SEED_MAX = 2**63 - 1
DAY_S = 86_400
HOUR_S = 3_600

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The numbers that were derived from the real trace.

    ``spread`` and each of ``lifetimes_s`` are quantiles at ``levels``. ``spread`` is the number of
    batches in a bin, relative to the mean of the bin's hour. ``lifetimes_s`` are the lifetimes of
    servers that left, in seconds and by shape. ``stays`` are the shares of servers that did not
    leave, by shape. ``sizes`` has rows of a minimum size, a maximum size, and a share of all
    batches. ``mixes`` are the shares of the shapes, by the minimum size of a batch.
    """

    levels: Numbers
    bin_s: int
    batches_per_bin: float
    hours: Numbers
    spread: Numbers
    sizes: tuple[tuple[int, int, float], ...]
    shapes: tuple[ServerShape, ...]
    mixes: Mapping[int, Numbers]
    lifetimes_s: tuple[Numbers, ...]
    stays: Numbers
    like_first: float


@cache
def calibration() -> Calibration:
    """Return the calibration that is a part of the program."""
    return read(files(__package__).joinpath("calibration.toml").read_text(encoding="utf-8"))


def read(text: str) -> Calibration:
    """Parse a calibration in the format that ``benchmarks.calibrate`` prints."""
    values: dict[str, Any] = tomllib.loads(text)
    shapes = values["shapes"]
    return Calibration(
        levels=np.array(values["levels"]),
        bin_s=values["bin_s"],
        batches_per_bin=values["batches_per_bin"],
        hours=np.array(values["hours"]),
        spread=np.array(values["spread"]),
        sizes=tuple((low, high, share) for low, high, share in values["sizes"]),
        shapes=tuple(
            ServerShape(each["name"], {"VCPU": each["vcpus"], "MEMORY_MB": each["memory_mb"]})
            for each in shapes
        ),
        mixes={each["from"]: np.array(each["shares"]) for each in values["mixes"]},
        lifetimes_s=tuple(np.array(each["lifetimes_s"]) for each in shapes),
        stays=np.array([each["stays"] for each in shapes]),
        like_first=values["like_first"],
    )


def make(text: str) -> Workload:
    """Generate the trace that a text like ``synthetic:DAYS:SEED`` describes."""
    parts = text.removeprefix(PREFIX).split(":")
    if len(parts) > 2:  # noqa: PLR2004
        raise Invalid(f"A synthetic trace is {PREFIX}DAYS or {PREFIX}DAYS:SEED, not {text!r}.")
    days, seed = number_of(parts[0]), whole_of(parts[1]) if len(parts) > 1 else 0
    least = calibration().bin_s / DAY_S
    if days is None or not least <= days <= DAYS_MAX:
        # Round up, so that the printed bound is a valid value.
        shown = math.ceil(least * 1e5) / 1e5
        raise Invalid(
            f"A synthetic trace is {PREFIX}DAYS or {PREFIX}DAYS:SEED, with DAYS a number from "
            f"{shown:.5f} (one of its bins of time) to {DAYS_MAX:g}, not {text!r}."
        )
    if seed is None or not 0 <= seed <= SEED_MAX:
        raise Invalid(
            f"A synthetic trace is {PREFIX}DAYS or {PREFIX}DAYS:SEED, with SEED a whole number "
            f"from 0 to {SEED_MAX}, not {text!r}."
        )
    return draw(calibration(), days, seed)


def draw(numbers: Calibration, days: float, seed: int) -> Workload:
    """Generate a trace of this number of days."""
    dice = np.random.Generator(np.random.PCG64(seed))
    bins = int(days * DAY_S) // numbers.bin_s
    starts = np.arange(bins) * numbers.bin_s
    batches = _batches(numbers, starts, dice.random(bins))
    moments: Numbers = np.repeat(starts.astype(np.float64), batches)
    if not moments.shape[0]:
        # A trace needs at least one server.
        moments = np.zeros(1)
    count = len(moments)
    moments += np.floor(dice.random(count) * numbers.bin_s)
    sizes = _sizes(numbers, dice.random(count), dice.random(count))
    codes = _codes(numbers, sizes, dice.random(count))
    members = np.repeat(np.arange(count), sizes)
    arrivals, shapes = moments[members], codes[members]
    lifetimes = _lifetimes(numbers, members, shapes, dice)
    in_order, leavings, columns = ordered(arrivals, arrivals + lifetimes, shapes, members)
    return Workload(
        f"{PREFIX}{days:g}:{seed}", numbers.shapes, in_order, leavings, columns[0], columns[1]
    )


def _pick(shares: Sequence[float] | Numbers, drawn: Numbers) -> npt.NDArray[np.int64]:
    """Return an index of ``shares`` for each number in ``drawn``.

    The shares are the probabilities of the indexes.
    """
    edges = np.cumsum(np.asarray(shares, dtype=float))
    return np.searchsorted(edges / edges[-1], drawn, side="right").astype(np.int64)


def _batches(
    numbers: Calibration, starts: npt.NDArray[np.int64], drawn: Numbers
) -> npt.NDArray[np.int64]:
    expected = numbers.batches_per_bin * numbers.hours[starts // HOUR_S % 24]
    return np.rint(expected * np.interp(drawn, numbers.levels, numbers.spread)).astype(np.int64)


def _sizes(numbers: Calibration, drawn: Numbers, within: Numbers) -> npt.NDArray[np.int64]:
    low, high, shares = (np.array(column) for column in zip(*numbers.sizes, strict=True))
    rows = _pick(shares, drawn)
    found: npt.NDArray[np.int64] = low[rows] + np.floor(
        within * (high[rows] - low[rows] + 1)
    ).astype(np.int64)
    return found


def _codes(
    numbers: Calibration, sizes: npt.NDArray[np.int64], drawn: Numbers
) -> npt.NDArray[np.int64]:
    codes = np.zeros(sizes.shape[0], dtype=np.int64)
    # The order is ascending, so that the mixes of larger batches replace the mixes of smaller
    # batches.
    for least in sorted(numbers.mixes):
        meant = sizes >= least
        codes[meant] = _pick(numbers.mixes[least], drawn[meant])
    return codes


def _lifetimes(
    numbers: Calibration,
    members: npt.NDArray[np.int64],
    shapes: npt.NDArray[np.int64],
    dice: np.random.Generator,
) -> Numbers:
    count = len(members)
    own: Numbers = np.zeros(count)
    is_staying = dice.random(count)
    drawn = dice.random(count)
    for code, quantiles in enumerate(numbers.lifetimes_s):
        mine = shapes == code
        own[mine] = np.interp(drawn[mine], numbers.levels, quantiles)
    own[is_staying < numbers.stays[shapes]] = NEVER
    # The index of the first server of each server's batch.
    firsts = np.searchsorted(members, members, side="left")
    follows = dice.random(count) < numbers.like_first
    return np.where(follows, own[firsts], own)
