"""The cache of tokens: what it keeps, and when it looks a token up again."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any

import pytest

from innkeeper.domain.errors import Unauthenticated
from innkeeper.domain.identity import RequestContext
from innkeeper.entrypoints.api.token_cache import TOKENS_MAX, CachedToken, TokenCache

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - the core's clock is naive and in UTC
REMEMBER_S = 10.0


class Issuer:
    """Validates every token but ``void``, counts lookups, and has a clock."""

    def __init__(self, lifetime_s: float = 3600.0) -> None:
        self.asked: list[str] = []
        self.now = NOON
        self.until = NOON + timedelta(seconds=lifetime_s)
        self.answers = asyncio.Event()
        self.answers.set()
        self.cache = TokenCache(self.look, lambda: self.now, REMEMBER_S)

    async def look(self, token: str, now: datetime) -> CachedToken:
        """Answer once ``answers`` is set."""
        self.asked.append(token)
        await self.answers.wait()
        if token == "void":
            raise Unauthenticated("It is void.")
        return CachedToken(RequestContext("", token, roles=frozenset({"member"})), self.until)

    async def use(self, token: str) -> RequestContext:
        """Authenticate with a token."""
        return await self.cache.authenticate({"x-auth-token": token}, "req-1")


def finish(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_a_token_is_cached_for_the_time_in_the_settings() -> None:
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


def test_a_token_is_not_accepted_after_its_expiry() -> None:
    async def story() -> None:
        issuer = Issuer(lifetime_s=2)
        await issuer.use("a")
        issuer.now += timedelta(seconds=2)
        await issuer.use("a")
        assert issuer.asked == ["a", "a"]

    finish(story())


def test_concurrent_requests_share_one_lookup() -> None:
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


def test_a_lookup_during_an_invalidation_is_not_cached() -> None:
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


def test_rejections_are_not_cached() -> None:
    async def story() -> None:
        issuer = Issuer()
        for _ in range(2):
            with pytest.raises(Unauthenticated):
                await issuer.use("void")
        with pytest.raises(Unauthenticated):
            await issuer.cache.authenticate({}, "req-1")
        assert issuer.asked == ["void", "void"]

    finish(story())


def test_the_cache_is_bounded() -> None:
    async def story() -> None:
        issuer = Issuer()
        for number in range(TOKENS_MAX + 1):
            await issuer.use(str(number))
        issuer.asked.clear()
        await issuer.use(str(TOKENS_MAX))
        await issuer.use("0")
        assert issuer.asked == ["0"]

    finish(story())


def test_writes_of_other_processes_invalidate_the_cache() -> None:
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
        # After a restore, the database's counter continues from the backup's value.
        numbers.append(1)
        await issuer.use("a")
        assert issuer.asked == ["a", "a", "a"]

    finish(story())


def test_a_lookup_during_a_write_of_another_process_is_repeated() -> None:
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
        # Only the later of the two tokens stays in the cache.
        await issuer.use("a")
        assert issuer.asked == ["a", "a"]

    finish(story())


def test_setting_the_clock_back_extends_no_entry() -> None:
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


def test_setting_the_clock_forward_expires_entries() -> None:
    async def story() -> None:
        issuer = Issuer()
        await issuer.use("a")
        issuer.now += timedelta(minutes=50)
        await issuer.use("a")
        assert issuer.asked == ["a", "a"]

    finish(story())
