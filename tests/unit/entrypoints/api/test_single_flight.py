"""A shared query: each result was read after the call."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from innkeeper.entrypoints.api.single_flight import SingleFlight

MANY = 50


class World:
    """A state that changes, and is read with some delay."""

    def __init__(self) -> None:
        self.state = 0
        self.asked = 0
        self.at_once = 0
        self.most_at_once = 0
        self.is_broken = False

    async def ask(self) -> int:
        """The state at the call, which is the oldest that a result may have."""
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            seen = self.state
            await asyncio.sleep(0.001)
            if self.is_broken:
                raise OSError("It is broken.")
            return seen
        finally:
            self.at_once -= 1


def finish(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_no_result_is_older_than_its_call() -> None:
    async def story() -> None:
        world = World()
        shared = SingleFlight(world.ask)

        async def ask() -> None:
            for _ in range(MANY):
                before = world.state
                assert await shared() >= before

        async def write() -> None:
            for _ in range(MANY * 2):
                await asyncio.sleep(0.0003)
                world.state += 1

        await asyncio.gather(write(), *(ask() for _ in range(8)))
        assert world.most_at_once == 1
        assert world.asked < MANY * 8

    finish(story())


def test_concurrent_callers_share_one_query() -> None:
    async def story() -> None:
        world = World()
        shared = SingleFlight(world.ask)
        await asyncio.gather(*(shared() for _ in range(MANY)))
        assert world.asked == 1

    finish(story())


def test_an_error_is_raised_for_the_callers_of_its_query() -> None:
    async def story() -> None:
        world = World()
        shared = SingleFlight(world.ask)
        world.is_broken = True
        early = [asyncio.create_task(shared()) for _ in range(3)]
        while not world.asked:
            await asyncio.sleep(0)
        late = asyncio.create_task(shared())
        await asyncio.wait(early)
        world.is_broken = False
        assert await late == 0
        for each in early:
            with pytest.raises(OSError, match="broken"):
                await each

    finish(story())


def test_a_cancelled_caller_does_not_cancel_the_query() -> None:
    async def story() -> None:
        shared = SingleFlight(World().ask)
        gone, stays = asyncio.create_task(shared()), asyncio.create_task(shared())
        await asyncio.sleep(0)
        gone.cancel()
        assert await stays == 0

    finish(story())
