"""Derives the numbers from which ``innkeeper simulate`` generates synthetic traces.

    python -m benchmarks.calibrate FOLDER > calibration.toml

The folder contains an arrival trace of at least one day, as ``docs/reference/simulate.md``
describes it. The output is ``src/innkeeper/entrypoints/simulator/traces/calibration.toml``. The
module ``synthetic.py`` in that folder explains each number.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.entrypoints.simulator.traces import detection
from innkeeper.scheduling.simulation.workload import Workload

BIN_S = 300
SHAPES = 6
"""The number of most frequent shapes that are kept. Only one server in a thousand has another
shape."""
LEVELS = (*(round(each / 20, 2) for each in range(20)), 0.97, 0.98, 0.99, 0.995, 1.0)
"""The levels of the quantiles. They are denser at the end, where few servers live very long."""
SIZES = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 65, 80, 100, 130, 170, 250, 400)
"""The lower bounds of the classes of batch sizes."""
MIXES = (1, 2, 10, 30, 100)
"""The minimum batch sizes of the mixes of shapes."""


def main(arguments: Sequence[str]) -> int:
    """Print the numbers of one trace."""
    workload = detection.load(arguments[0], None)
    kept = np.sort(np.argsort(-workload.per_shape(), kind="stable")[:SHAPES])
    print("# Counted in the arrival trace by benchmarks/calibrate.py; see synthetic.py.")
    print("# The trace: Azure Public Dataset V1 (Cortez et al., SOSP 2017), CC-BY 4.0, as")
    print("# arranged by Bergsma et al. (SOSP 2021). Only these numbers of it are here.")
    _print_arrivals(workload)
    _print_sizes(workload)
    _print_mixes(workload, kept)
    _print_like_first(workload)
    _print_shapes(workload, kept)
    return 0


def _list(values: Iterable[Any]) -> str:
    return "[" + ", ".join(f"{float(each):.5g}" for each in values) + "]"


def _firsts(workload: Workload) -> npt.NDArray[np.int64]:
    """Return the first server of each batch."""
    return np.flatnonzero(np.diff(workload.batches, prepend=workload.batches[0] - 1))


def _print_arrivals(workload: Workload) -> None:
    moments = workload.arrivals_s[_firsts(workload)]
    bins = (moments // BIN_S).astype(np.int64)
    counts = np.bincount(bins - bins[0])
    hours = (np.arange(counts.shape[0]) + bins[0]) * BIN_S // 3600 % 24
    mean = counts.mean()
    by_hour = np.array([counts[hours == hour].mean() for hour in range(24)]) / mean
    # All hours of a day have the same weight in synthetic traces, and nearly so in the real one.
    by_hour /= by_hour.mean()
    spread = counts / (mean * by_hour[hours])
    spread /= spread.mean()
    print(f"levels = {_list(LEVELS)}")
    print(f"bin_s = {BIN_S}")
    print(f"batches_per_bin = {mean:.5g}")
    print(f"hours = {_list(by_hour)}")
    print(f"spread = {_list(_with_mean(spread))}")


def _with_mean(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return quantiles of the values, scaled so that values drawn from them have the same mean."""
    found: npt.NDArray[np.float64] = np.quantile(values, LEVELS)
    drawn = ((found[:-1] + found[1:]) / 2 * np.diff(LEVELS)).sum()
    scaled: npt.NDArray[np.float64] = found * (values.mean() / drawn)
    return scaled


def _print_sizes(workload: Workload) -> None:
    sizes = np.bincount(np.cumsum(np.diff(workload.batches, prepend=-1) != 0) - 1)
    tops = [*(each - 1 for each in SIZES[1:]), int(sizes.max())]
    print("sizes = [")
    for low, high in zip(SIZES, tops, strict=True):
        inside = sizes[(sizes >= low) & (sizes <= high)]
        if not inside.shape[0]:
            continue
        # Sizes of a class are drawn evenly, so its upper bound is adjusted to keep its mean.
        top = max(low, min(high, round(2 * float(inside.mean()) - low)))
        print(f"  [{low}, {top}, {inside.shape[0] / sizes.shape[0]:.5g}],")
    print("]")


def _print_mixes(workload: Workload, kept: npt.NDArray[np.int64]) -> None:
    places = np.cumsum(np.diff(workload.batches, prepend=-1) != 0) - 1
    sizes = np.bincount(places)[places]
    tops = [*MIXES[1:], workload.count + 1]
    print("mixes = [")
    for low, top in zip(MIXES, tops, strict=True):
        inside = workload.shape_codes[(sizes >= low) & (sizes < top)]
        counts = np.bincount(inside, minlength=len(workload.shapes))[kept]
        if not counts.any():
            continue
        print(f"  {{ from = {low}, shares = {_list(counts / counts.sum())} }},")
    print("]")


def _print_like_first(workload: Workload) -> None:
    firsts = _firsts(workload)
    lifetimes = workload.leavings_s - workload.arrivals_s
    places = np.cumsum(np.diff(workload.batches, prepend=-1) != 0) - 1
    others = np.ones(workload.count, dtype=np.bool_)
    others[firsts] = False
    alike = lifetimes == lifetimes[firsts][places]
    print(f"like_first = {alike[others].mean():.5g}")


def _print_shapes(workload: Workload, kept: npt.NDArray[np.int64]) -> None:
    lifetimes = workload.leavings_s - workload.arrivals_s
    for code in kept:
        shape = workload.shapes[code]
        mine = lifetimes[workload.shape_codes == code]
        left = mine[np.isfinite(mine)]
        print("\n[[shapes]]")
        print(f'name = "{shape.name}"')
        print(f"vcpus = {shape.amounts['VCPU']}")
        print(f"memory_mb = {shape.amounts['MEMORY_MB']}")
        print(f"stays = {1 - left.shape[0] / mine.shape[0]:.5g}")
        print(f"lifetimes_s = {_list(np.quantile(left, LEVELS))}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
