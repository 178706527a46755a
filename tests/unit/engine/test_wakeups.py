"""Wake-ups from any thread reach the listeners, and nobody else."""

from __future__ import annotations

import asyncio
import threading

from innkeeper.engine.wakeups import Wakeups


def test_a_wakeup_from_another_thread_is_heard() -> None:
    wakeups = Wakeups()

    async def hear() -> bool:
        with wakeups.listen("orders", "a1") as rung:
            ringer = threading.Thread(target=wakeups.wake, args=("orders", frozenset({"a1"})))
            ringer.start()
            await asyncio.wait_for(rung.wait(), 5.0)
            ringer.join()
            return rung.is_set()

    assert asyncio.run(hear())


def test_wakeups_for_others_are_not_heard() -> None:
    wakeups = Wakeups()

    async def hear() -> bool:
        with wakeups.listen("orders", "a1") as rung:
            wakeups.wake("orders", frozenset({"a2"}))
            wakeups.wake("other", frozenset({"a1"}))
            await asyncio.sleep(0.01)
            return rung.is_set()

    assert not asyncio.run(hear())


def test_several_hear_the_same_wakeup_and_leave_nothing_behind() -> None:
    wakeups = Wakeups()

    async def hear() -> list[bool]:
        with wakeups.listen("orders", "a1") as one, wakeups.listen("orders", "a1") as two:
            wakeups.wake("orders", frozenset({"a1"}))
            await asyncio.sleep(0.01)
            return [one.is_set(), two.is_set()]

    assert asyncio.run(hear()) == [True, True]
    # No listener is left, and their event loop is closed.
    wakeups.wake("orders", frozenset({"a1"}))


def test_a_service_that_stops_wakes_everybody() -> None:
    wakeups = Wakeups()

    async def hear() -> list[bool]:
        with wakeups.listen("orders", "a1") as one, wakeups.listen("other", "a2") as two:
            before = wakeups.is_stopping
            threading.Thread(target=wakeups.stop).start()
            await asyncio.wait_for(asyncio.gather(one.wait(), two.wait()), 5.0)
            return [before, wakeups.is_stopping]

    assert asyncio.run(hear()) == [False, True]
