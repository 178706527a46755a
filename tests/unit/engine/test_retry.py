"""A write that lost to another writer is repeated: so often, and for that reason only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.errors import (
    ConcurrentUpdate,
    Invalid,
    Overtaken,
    ProviderChanged,
    Refusal,
)
from innkeeper.engine.retry import again

ATTEMPTS_MAX = 4


class Attempts:
    """An attempt that goes as is told, one outcome after the other."""

    def __init__(self, outcomes: Sequence[Refusal | str]) -> None:
        self.left = list(outcomes)
        self.made = 0

    async def __call__(self) -> str:
        self.made += 1
        outcome = self.left.pop(0)
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome


def wait_for(attempts: Attempts, **more: str) -> str:
    """Repeat until it goes well."""
    with capture_logs():
        return asyncio.run(again(attempts, ATTEMPTS_MAX, **more))


@pytest.mark.parametrize("lost", range(ATTEMPTS_MAX))
def test_who_is_overtaken_tries_again(lost: int) -> None:
    attempts = Attempts([ProviderChanged(1, 7)] * lost + ["written"])
    assert wait_for(attempts) == "written"
    assert attempts.made == lost + 1


def test_who_is_overtaken_too_often_is_told_to_come_back() -> None:
    attempts = Attempts([ProviderChanged(1, 7), Overtaken("Somebody came between.")] * 9)
    with pytest.raises(ConcurrentUpdate) as caught:
        wait_for(attempts)
    assert attempts.made == ATTEMPTS_MAX
    assert not isinstance(caught.value, Overtaken)
    assert caught.value.code == "concurrent_update"
    assert caught.value.message == (
        "Inventory and/or allocations changed while attempting to allocate: Another thread "
        "concurrently updated the resource provider data. Please retry your update"
    )


def test_each_request_has_its_own_words_for_it() -> None:
    with pytest.raises(ConcurrentUpdate, match=r"^update conflict: Another thread"):
        wait_for(Attempts([Overtaken("Somebody came between.")] * 9), lost="update conflict: ")


@pytest.mark.parametrize(
    "refusal", [ConcurrentUpdate("The consumer moved on."), Invalid("No.")]
)
def test_what_the_client_must_decide_is_not_repeated(refusal: Refusal) -> None:
    attempts = Attempts([ProviderChanged(1, 7), refusal, "written"])
    with pytest.raises(type(refusal)) as caught:
        wait_for(attempts)
    assert caught.value is refusal
    assert attempts.made == 2
