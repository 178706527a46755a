"""The gauges of child zones."""

from __future__ import annotations

from datetime import UTC, datetime

from innkeeper.domain.zone_tree import ChildState, ChildZone
from innkeeper.engine.zones.upkeep import measured

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def child(number: int, name: str, *, failures: int = 0, is_enabled: bool = True) -> ChildZone:
    state = ChildState(is_active=failures == 0, failures=failures)
    url = "http://kid/v2.1"
    return ChildZone(
        number, str(number), name, url, "up", 0.0, 1.0, is_enabled, False, NOW, NOW, state
    )


def test_each_child_is_shown_with_its_servers_and_failures() -> None:
    found = measured([child(1, "east"), child(2, "west", failures=3)], {2: 7})
    assert found == {"east": (True, 0, 0), "west": (False, 7, 3)}


def test_a_child_that_is_disabled_has_no_failures_because_it_is_not_polled() -> None:
    assert measured([child(1, "east", failures=3, is_enabled=False)], {1: 4}) == {
        "east": (False, 4, 0)
    }


def test_a_failing_child_is_not_hidden_by_another_one_with_its_name() -> None:
    for some in (
        [child(1, "same", failures=3), child(2, "same")],
        [child(2, "same"), child(1, "same", failures=3)],
    ):
        assert measured(some, {1: 2, 2: 5}) == {"same": (False, 7, 3)}
