"""What one process knows of child zones, while it changes one."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from innkeeper.engine.zones.known_children import KNOWN_FOR_S, KnownChildren


class Database:
    """An engine whose reads end when the test says so. They return the value from their
    beginning."""

    def __init__(self) -> None:
        self.value = ["old"]
        self.reads = 0
        self.may_end = asyncio.Event()

    async def read(self, work: Any) -> list[str]:
        """Read the value as it is now."""
        found, self.reads = self.value, self.reads + 1
        await self.may_end.wait()
        return found


async def run() -> None:
    database, timer_s = Database(), 0.0
    known = KnownChildren(cast("Any", database), cast("Any", None), 1.0, lambda: timer_s)
    begun = asyncio.ensure_future(known.every())
    await asyncio.sleep(0)
    database.value = ["new"]
    known.forget()
    database.may_end.set()
    assert cast("Any", await begun) == ["old"], "it began before the change"
    assert cast("Any", await known.every()) == ["new"]
    assert cast("Any", await known.every()) == ["new"]
    assert database.reads == 2, "they are remembered"
    timer_s = KNOWN_FOR_S
    await known.every()
    assert database.reads == 3


def test_a_read_that_a_change_overtakes_is_not_remembered() -> None:
    asyncio.run(run())
