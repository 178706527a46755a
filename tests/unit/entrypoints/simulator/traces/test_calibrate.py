"""The numbers counted in a trace are those with which it was made."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import calibrate
from innkeeper.entrypoints.simulator.traces.synthetic import draw, read

BINS = 288
"""The number of bins in a day."""


def trace(path: Path) -> Path:
    """A day with two batches in each bin, and four batches in each bin of the eighth hour."""
    (path / "flav_map.txt").write_text("1,1 a\n2,4 b\n", encoding="utf-8")
    (path / "day.interval_map.txt").write_text("300 1\n600 2\n", encoding="utf-8")
    arrivals, durations = [], []
    for number in range(BINS):
        # One batch has a single server, which stays in every fourth bin. The other has three equal
        # servers, one of which lives longer.
        stays = "C1" if number % 4 == 0 else "U1"
        times = 2 if number // 12 == 7 else 1
        arrivals.append(f"{number * 300} " + "a,|,b,b,b,|," * times)
        durations.append(f"{number * 300} " + f"{stays},|,U1,U1,U2,|," * times)
    (path / "day.txt").write_text("\n".join(arrivals), encoding="utf-8")
    (path / "day.c86400.txt").write_text("\n".join(durations), encoding="utf-8")
    return path


def test_a_day_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate.main([str(trace(tmp_path))]) == 0
    numbers = read(capsys.readouterr().out)
    assert numbers.bin_s == 300
    assert numbers.batches_per_bin == pytest.approx(2 * 25 / 24, rel=1e-3)
    assert numbers.hours[7] == pytest.approx(2 * 24 / 25, rel=1e-3)
    assert numbers.hours[8] == pytest.approx(24 / 25, rel=1e-3)
    assert numbers.spread == pytest.approx(1.0), "all bins are as their hours are"
    assert numbers.sizes == ((1, 1, 0.5), (3, 3, 0.5))
    assert [shape.name for shape in numbers.shapes] == ["1c1g", "2c4g"]
    assert {least: shares.tolist() for least, shares in numbers.mixes.items()} == {
        1: [1.0, 0.0],
        2: [0.0, 1.0],
    }
    assert numbers.like_first == 0.5
    assert numbers.stays == pytest.approx([0.25, 0.0])
    assert [(each.min(), each.max()) for each in numbers.lifetimes_s] == [(300, 300), (300, 600)]

    made = draw(numbers, 3, 1)
    assert made.count == pytest.approx(2 * 25 / 24 * 2 * BINS * 3, rel=0.1)
    single, triple = made.per_shape().tolist()
    assert triple == pytest.approx(3 * single, rel=0.2)
