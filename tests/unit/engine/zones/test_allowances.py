"""Each zone parent has an allowance for each period."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from innkeeper.engine.zones.allowances import Allowances

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
PERIOD = timedelta(seconds=900)


def test_one_parent_does_not_use_up_what_another_is_allowed() -> None:
    allowed = Allowances(10, PERIOD)
    assert allowed.take(1, 10, NOW)
    assert not allowed.take(1, 1, NOW)
    assert allowed.take(2, 10, NOW)


def test_a_refused_part_takes_nothing_and_the_next_period_begins_anew() -> None:
    allowed = Allowances(10, PERIOD)
    assert allowed.take(1, 8, NOW)
    assert not allowed.take(1, 3, NOW)
    assert allowed.take(1, 2, NOW + PERIOD / 2)
    assert not allowed.take(1, 1, NOW + PERIOD / 2)
    assert allowed.take(1, 10, NOW + PERIOD)


def test_a_clock_that_goes_back_begins_a_period() -> None:
    allowed = Allowances(1, PERIOD)
    assert allowed.take(1, 1, NOW)
    assert allowed.take(1, 1, NOW - PERIOD)
