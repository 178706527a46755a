"""Periodic work on several pods at once."""

from __future__ import annotations

import asyncio

import pytest

from innkeeper.engine.pods.clouds import sum_of


async def fails() -> int:
    """Fail at once."""
    raise LookupError


def test_the_results_of_all_pods_are_summed_up() -> None:
    async def work(number: int) -> int:
        return number

    assert asyncio.run(sum_of(map(work, (1, 2, 3)))) == 6
    assert asyncio.run(sum_of(())) == 0


def test_an_error_at_one_pod_does_not_stop_the_work_on_others() -> None:
    ended: list[str] = []

    async def takes_longer() -> int:
        await asyncio.sleep(0.01)
        ended.append("other")
        return 1

    with pytest.raises(LookupError):
        asyncio.run(sum_of((fails(), takes_longer())))
    assert ended == ["other"]
