"""A service is late from a timeout until its next answered poll, unless polls are rare."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from innkeeper.engine.lateness import RARE_POLLS_S, Lateness
from tests.support.clouds import NOW

SOON = timedelta(seconds=1)


def test_a_service_is_late_until_it_answers_a_poll() -> None:
    late = Lateness(RARE_POLLS_S)
    assert not late.is_late("a", None)
    late.note("a", NOW)
    assert not late.is_late("b", None)
    assert late.is_late("a", None)
    assert late.is_late("a", NOW - SOON)
    assert late.is_late("a", NOW)
    assert not late.is_late("a", NOW + SOON)


@pytest.mark.parametrize("last_seen_at", [None, NOW])
def test_with_rare_polls_no_service_is_late(last_seen_at: datetime | None) -> None:
    late = Lateness(RARE_POLLS_S + 1)
    late.note("a", NOW)
    assert not late.is_late("a", last_seen_at)
