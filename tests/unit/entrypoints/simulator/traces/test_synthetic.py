"""Synthetic traces match their numbers, and are the same for the same seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.simulator.traces.synthetic import DAY_S, calibration, draw, make
from innkeeper.scheduling.simulation.workload import Workload

DAYS = 12
NUMBERS = calibration()


@pytest.fixture(scope="module")
def workload() -> Workload:
    return draw(NUMBERS, DAYS, 5)


def batch_sizes(workload: Workload) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    places = np.cumsum(np.diff(workload.batches, prepend=-1) != 0) - 1
    return np.bincount(places)


def batches_per_bin(workload: Workload) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    firsts = np.flatnonzero(np.diff(workload.batches, prepend=-1))
    bins = (workload.arrivals_s[firsts] // NUMBERS.bin_s).astype(np.int64)
    return np.bincount(bins, minlength=DAYS * DAY_S // NUMBERS.bin_s)


def test_batches_come_as_often_as_they_should_and_as_unevenly(workload: Workload) -> None:
    counts = batches_per_bin(workload)
    assert counts.mean() == pytest.approx(NUMBERS.batches_per_bin, rel=0.02)
    hours = np.arange(counts.shape[0]) * NUMBERS.bin_s // 3600 % 24
    by_hour = np.array([counts[hours == hour].mean() for hour in range(24)])
    assert by_hour == pytest.approx(NUMBERS.batches_per_bin * NUMBERS.hours, rel=0.1)
    beside = counts / (NUMBERS.batches_per_bin * NUMBERS.hours[hours])
    for level in (0.1, 0.5, 0.9, 0.99):
        wanted = np.interp(level, NUMBERS.levels, NUMBERS.spread)
        assert np.quantile(beside, level) == pytest.approx(wanted, abs=0.05)


def test_batches_are_as_large_as_they_should_be(workload: Workload) -> None:
    sizes = batch_sizes(workload)
    for low, high, share in NUMBERS.sizes:
        if share > 0.005:
            found = ((sizes >= low) & (sizes <= high)).mean()
            assert found == pytest.approx(share, rel=0.1)
    mean = sum((low + high) / 2 * share for low, high, share in NUMBERS.sizes)
    assert sizes.mean() == pytest.approx(mean, rel=0.06)
    assert sizes.max() <= max(high for _, high, _ in NUMBERS.sizes)


def test_most_servers_come_in_large_batches(workload: Workload) -> None:
    """This is a known property of the trace; see ``docs/reference/simulate.md``."""
    sizes = batch_sizes(workload)
    assert sizes[sizes >= 10].sum() / workload.count == pytest.approx(0.651, abs=0.04)


def test_shapes_are_mixed_by_the_size_of_the_batch(workload: Workload) -> None:
    sizes = batch_sizes(workload)
    firsts = np.flatnonzero(np.diff(workload.batches, prepend=-1))
    codes = workload.shape_codes[firsts]
    bounds = [*sorted(NUMBERS.mixes), 10**9]
    for low, top in pairwise(bounds):
        mine = codes[(sizes >= low) & (sizes < top)]
        found = np.bincount(mine, minlength=len(NUMBERS.shapes)) / mine.shape[0]
        wanted = NUMBERS.mixes[low] / NUMBERS.mixes[low].sum()
        assert found == pytest.approx(wanted, abs=0.04)
    assert len({*codes.tolist()}) == len(NUMBERS.shapes) == 6


def test_servers_live_as_long_as_they_should(workload: Workload) -> None:
    lifetimes = workload.leavings_s - workload.arrivals_s
    for code, quantiles in enumerate(NUMBERS.lifetimes_s):
        mine = lifetimes[workload.shape_codes == code]
        assert np.isinf(mine).mean() == pytest.approx(NUMBERS.stays[code], abs=0.05)
        left = mine[np.isfinite(mine)]
        assert left.min() >= 150.0
        for level in (0.25, 0.5, 0.75):
            low, high = np.interp([level - 0.06, level + 0.06], NUMBERS.levels, quantiles)
            assert low * 0.99 <= np.quantile(left, level) <= high * 1.01


def test_two_thirds_live_less_than_an_hour(workload: Workload) -> None:
    lifetimes = workload.leavings_s - workload.arrivals_s
    assert (lifetimes <= 3600).mean() == pytest.approx(0.688, abs=0.03)
    assert (lifetimes <= DAY_S).mean() == pytest.approx(0.933, abs=0.02)


def test_half_of_a_batch_live_as_long_as_the_first(workload: Workload) -> None:
    lifetimes = workload.leavings_s - workload.arrivals_s
    firsts = np.flatnonzero(np.diff(workload.batches, prepend=-1))
    places = np.cumsum(np.diff(workload.batches, prepend=-1) != 0) - 1
    others = np.ones(workload.count, dtype=np.bool_)
    others[firsts] = False
    # Lifetimes are differences of moments, so equal lifetimes may differ by rounding.
    alike = np.isclose(lifetimes, lifetimes[firsts][places], rtol=0, atol=1e-3)
    assert alike[others].mean() == pytest.approx(NUMBERS.like_first, abs=0.03)


def test_the_seed_decides() -> None:
    one, same, other = (make("synthetic:0.25:7"), make("synthetic:0.25:7"), make("synthetic:0.25"))
    assert one.arrivals_s.tolist() == same.arrivals_s.tolist()
    assert one.leavings_s.tolist() == same.leavings_s.tolist()
    assert one.shape_codes.tolist() == same.shape_codes.tolist()
    assert one.arrivals_s.tolist() != other.arrivals_s.tolist()


def test_a_bin_is_enough() -> None:
    assert make("synthetic:0.0035").count >= 1


@pytest.mark.parametrize(
    "text",
    [
        *("synthetic:", "synthetic:x", "synthetic:0", "synthetic:-1", "synthetic:61"),
        *("synthetic:nan", "synthetic:inf", "synthetic:1:x", "synthetic:1:-1", "synthetic:1:2:3"),
        *("synthetic:0.001", f"synthetic:1:{2**63}", "synthetic:1:1.5"),
    ],
)
def test_what_cannot_be_made_up(text: str) -> None:
    with pytest.raises(Invalid, match="A synthetic trace is synthetic:DAYS"):
        make(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("synthetic:nan", "with DAYS a number from 0.00348"),
        ("synthetic:61", "to 60, not 'synthetic:61'"),
        ("synthetic:\u0663", "with DAYS a number"),
        ("synthetic:1:-1", "with SEED a whole number from 0 to 9223372036854775807"),
        ("synthetic:1:\u0663", "with SEED a whole number"),
    ],
)
def test_the_error_names_the_valid_synthetic_traces(text: str, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        make(text)


def test_the_smallest_named_trace_is_valid() -> None:
    assert make("synthetic:0.00348").count > 0
