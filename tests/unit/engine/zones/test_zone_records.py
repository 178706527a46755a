"""The result of a boot is recorded after the answer if a repair would keep all servers anyway."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from innkeeper.domain.ids import ServerId
from innkeeper.domain.limits import Limits
from innkeeper.domain.slices import Zoning
from innkeeper.engine.zones.booting import TreeBooter
from innkeeper.engine.zones.progress import Progress
from innkeeper.engine.zones.tree import ZoneParts, ZoneTree
from innkeeper.systems.zones import remote

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
IDS = [ServerId(str(number)) for number in range(3)]


class Recorder:
    """An engine that notes what is written, and when."""

    def __init__(self) -> None:
        self.written: list[str] = []

    async def write(self, work: Any, lines: int = 1) -> bool:
        """Note a write before the answer."""
        self.written.append("before")
        return True

    def write_later(self, work: Any, item: remote.BuiltBelow, lines: int = 1) -> None:
        """Note a write after the answer."""
        self.written.append(f"after: {sorted(item.uuids)}")


def written(progress: Progress, now: datetime) -> list[str]:
    """Keep the servers of a batch, and return what is written for the batch."""
    engine: Any = Recorder()
    other: Any = None
    zoning = Zoning(zone_select_timeout_s=2, zone_request_timeout_s=30)
    parts = ZoneParts(engine, other, other, other, zoning, "", other, lambda: now)
    booter = TreeBooter(ZoneTree(parts), cast("Limits", other), 60.0)
    assert asyncio.run(booter._keep(progress))
    return cast("list[str]", engine.written)


def test_a_batch_that_is_built_at_once_is_recorded_later() -> None:
    progress = Progress(IDS, own={0}, below={1, 2}, begun_at=NOW)
    assert written(progress, NOW + timedelta(seconds=31)) == ["after: ['1', '2']"]


@pytest.mark.parametrize("late_s", [32, 1000])
def test_a_batch_that_a_repair_may_have_looked_at_is_recorded_first(late_s: int) -> None:
    progress = Progress(IDS, below={0, 1, 2}, begun_at=NOW)
    assert written(progress, NOW + timedelta(seconds=late_s)) == ["before"]


def test_a_batch_with_rows_in_doubt_is_recorded_first() -> None:
    for more in ({"doubtful": ["x"]}, {"gone": ["x"]}):
        progress = Progress(IDS, below={0, 1}, begun_at=NOW, **cast("Any", more))
        assert written(progress, NOW) == ["before"]
