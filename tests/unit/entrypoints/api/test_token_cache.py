"""What is remembered of tokens, and what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any

import pytest

from innkeeper.domain.errors import Unauthenticated
from innkeeper.domain.identity import RequestContext
from innkeeper.entrypoints.api.token_cache import TOKENS_MAX, Known, TokenCache

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - the core's clock is naive and in UTC
REMEMBER_S = 10.0


class Issuer:
    """Knows every token but ``void``, counts the questions, and is its own clock."""

    def __init__(self, lifetime_s: float = 3600.0) -> None:
        self.asked: list[str] = []
        self.now = NOON
        self.until = NOON + timedelta(seconds=lifetime_s)
        self.answers = asyncio.Event()
        self.answers.set()
        self.cache = TokenCache(self.look, lambda: self.now, REMEMBER_S)

    async def look(self, token: str, now: datetime) -> Known:
        """Answer once ``answers`` is set."""
        self.asked.append(token)
        await self.answers.wait()
        if token == "void":
            raise Unauthenticated("It is void.")
        return Known(RequestContext("", token, roles=frozenset({"member"})), self.until)

    async def use(self, token: str) -> RequestContext:
        """Authenticate with a token."""
        return await self.cache.authenticate({"x-auth-token": token}, "req-1")


def finish(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_a_token_is_asked_for_once_and_for_a_while() -> None:
    async def story() -> None:
        issuer = Issuer()
        first = await issuer.use("a")
        issuer.now += timedelta(seconds=REMEMBER_S - 1)
        assert await issuer.use("a") == first
        assert (first.user_id, first.request_id) == ("a", "req-1")
        assert first.roles == frozenset({"member"})
        assert issuer.asked == ["a"]
        issuer.now += timedelta(seconds=1)
        await issuer.use("a")
        assert issuer.asked == ["a", "a"]

    finish(story())


def test_a_token_is_not_believed_past_its_end() -> None:
    async def story() -> None:
        issuer = Issuer(lifetime_s=2)
        await issuer.use("a")
        issuer.now += timedelta(seconds=2)
        await issuer.use("a")
        assert issuer.asked == ["a", "a"]

    finish(story())


def test_many_at_once_ask_once() -> None:
    async def story() -> None:
        issuer = Issuer()
        issuer.answers.clear()
        tasks = [asyncio.create_task(issuer.use("a")) for _ in range(5)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        issuer.answers.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert [each.user_id for each in found[1:] if isinstance(each, RequestContext)] == ["a"] * 4
        assert issuer.asked == ["a"]

    finish(story())


def test_what_was_asked_before_forgetting_is_not_remembered_after() -> None:
    async def story() -> None:
        issuer = Issuer()
        issuer.answers.clear()
        early = asyncio.create_task(issuer.use("a"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        issuer.cache.forget()
        issuer.answers.set()
        await early
        await issuer.use("a")
        assert issuer.asked == ["a", "a"]

    finish(story())


def test_refusals_are_not_remembered() -> None:
    async def story() -> None:
        issuer = Issuer()
        for _ in range(2):
            with pytest.raises(Unauthenticated):
                await issuer.use("void")
        with pytest.raises(Unauthenticated):
            await issuer.cache.authenticate({}, "req-1")
        assert issuer.asked == ["void", "void"]

    finish(story())


def test_there_is_an_end_to_memory() -> None:
    async def story() -> None:
        issuer = Issuer()
        for number in range(TOKENS_MAX + 1):
            await issuer.use(str(number))
        issuer.asked.clear()
        await issuer.use(str(TOKENS_MAX))
        await issuer.use("0")
        assert issuer.asked == ["0"]

    finish(story())


def test_what_others_wrote_makes_it_forget() -> None:
    async def story() -> None:
        issuer = Issuer()
        numbers = [1]

        async def heard() -> int:
            return numbers[-1]

        issuer.cache = TokenCache(issuer.look, lambda: issuer.now, REMEMBER_S, heard)
        await issuer.use("a")
        await issuer.use("a")
        assert issuer.asked == ["a"]
        numbers.append(2)
        await issuer.use("a")
        assert issuer.asked == ["a", "a"]
        # A database that was restored counts from where it was.
        numbers.append(1)
        await issuer.use("a")
        assert issuer.asked == ["a", "a", "a"]

    finish(story())


def test_what_is_being_looked_up_while_others_write_is_looked_up_anew() -> None:
    async def story() -> None:
        issuer = Issuer()
        numbers = [1]

        async def heard() -> int:
            return numbers[-1]

        issuer.cache = TokenCache(issuer.look, lambda: issuer.now, REMEMBER_S, heard)
        issuer.answers.clear()
        early = asyncio.create_task(issuer.use("a"))
        while issuer.asked != ["a"]:
            await asyncio.sleep(0)
        numbers.append(2)
        late = asyncio.create_task(issuer.use("a"))
        while issuer.asked != ["a", "a"]:
            await asyncio.sleep(0)
        issuer.answers.set()
        await asyncio.gather(early, late)
        # Of the two only the later one is remembered.
        await issuer.use("a")
        assert issuer.asked == ["a", "a"]

    finish(story())


def test_a_clock_that_is_set_back_makes_nothing_remembered_longer() -> None:
    async def story() -> None:
        issuer = Issuer()
        await issuer.use("a")
        issuer.now -= timedelta(hours=1)
        await issuer.use("a")
        assert issuer.asked == ["a", "a"]
        issuer.now += timedelta(seconds=REMEMBER_S - 1)
        await issuer.use("a")
        assert issuer.asked == ["a", "a"]

    finish(story())


def test_a_clock_that_is_set_forward_has_it_asked_for_again() -> None:
    async def story() -> None:
        issuer = Issuer()
        await issuer.use("a")
        issuer.now += timedelta(minutes=50)
        await issuer.use("a")
        assert issuer.asked == ["a", "a"]

    finish(story())
