"""Hours count within the window only, and nothing is counted before a launch."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from innkeeper.domain.usage import ServerPeriod, total

NOON = datetime(2030, 1, 1, 12)  # noqa: DTZ001 - the house's times have no zone
HOUR = timedelta(hours=1)


def period(launched: int | None, deleted: int | None) -> ServerPeriod:
    """A server of 2 processors, 512 MB and 10 GB, in hours after noon."""
    return ServerPeriod(
        row=1,
        uuid="a",
        name="a",
        project_id="lab",
        flavor_name="small",
        vcpus=2,
        memory_mb=512,
        disk_gb=10,
        status="ACTIVE",
        launched_at=None if launched is None else NOON + launched * HOUR,
        deleted_at=None if deleted is None else NOON + deleted * HOUR,
    )


@pytest.mark.parametrize(
    ("launched", "deleted", "hours"),
    [
        (None, None, 0),
        (-5, None, 4),
        (-5, 2, 2),
        (1, 3, 2),
        (1, None, 3),
        (-5, -1, 0),
        (5, None, 0),
        (4, 5, 0),
    ],
)
def test_hours_within_a_window(launched: int | None, deleted: int | None, hours: float) -> None:
    assert period(launched, deleted).hours_in(NOON, NOON + 4 * HOUR) == hours


def test_sums() -> None:
    added = total([period(0, 1), period(1, None), period(None, None)], NOON, NOON + 4 * HOUR)
    assert (added.hours, added.vcpu_hours) == (4, 8)
    assert (added.memory_mb_hours, added.disk_gb_hours) == (2048, 40)
    assert total([], NOON, NOON).hours == 0
