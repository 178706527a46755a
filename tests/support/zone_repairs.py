"""Carries out the periodic work of a zone that has child zones, whenever a test wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import msgspec

from innkeeper.engine.zones.booting import TreeBooter
from innkeeper.engine.zones.tree import ZoneTree
from tests.support.running import Running

T = TypeVar("T")


def carry_out(zone: Running, work: Callable[[ZoneTree, TreeBooter], Awaitable[T]]) -> T:
    """Run work in an event loop, as the program's threads do. Polls are always due."""
    neighbours = zone.service.site.neighbours
    assert neighbours is not None

    async def act() -> T:
        here = neighbours.beside()
        parts = here.tree.parts
        zoning = msgspec.structs.replace(parts.zoning, zone_poll_interval_s=0.0)
        tree = ZoneTree(replace(parts, zoning=zoning))
        booter = TreeBooter(tree, here.booter.limits, here.booter.service_down_time_s)
        try:
            return await work(tree, booter)
        finally:
            await parts.client.close()

    return asyncio.run(act())
