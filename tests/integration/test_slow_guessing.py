"""Logins with wrong passwords, over HTTP, with a clock that the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.errors import Unavailable
from innkeeper.entrypoints.api.passwords import WAITING_FROM_ONE_MAX, WAITING_MAX
from tests.support.isolated_projects import PASSWORD, admin_token
from tests.support.running import Running, running

TOKENS = "/identity/v3/auth/tokens"
FREE = 3


class Clock:
    """Stands still until the test advances it."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC).replace(tzinfo=None)

    def __call__(self) -> datetime:
        return self.now

    def move(self, count: float) -> None:
        """Let some seconds pass."""
        self.now += timedelta(seconds=count)


@contextmanager
def clocked(folder: Path, **settings: Any) -> Iterator[tuple[Running, Clock]]:
    """A service with a user "ann", and the clock that counts its attempts."""
    wanted = {"auth": "builtin", "login_failures_free": FREE, **settings}
    with running(folder, **wanted) as service:
        clock = Clock()
        service.service.site.clock = clock
        user = {"user": {"name": "ann", "password": PASSWORD}}
        admin = admin_token(service)
        assert service.call("POST", "/identity/v3/users", admin, json=user).is_success
        yield service, clock


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Running, Clock]]:
    with clocked(tmp_path) as both:
        yield both


def attempt(service: Running, password: str, source: str = "", **user: Any) -> Any:
    """Try to log in; returns the answer."""
    named = user or {"name": "ann", "domain": {"id": "default"}}
    identity = {"methods": ["password"], "password": {"user": {**named, "password": password}}}
    headers = {"x-forwarded-for": source} if source else {}
    body = {"auth": {"identity": identity, "scope": "unscoped"}}
    return service.call("POST", TOKENS, None, json=body, headers=headers)


def statuses(service: Running, count: int, **more: Any) -> list[int]:
    """The statuses of this many logins with wrong passwords."""
    return [attempt(service, "wrong", **more).status_code for _ in range(count)]


def test_after_a_few_wrong_passwords_one_has_to_wait(pair: tuple[Running, Clock]) -> None:
    service, clock = pair
    assert statuses(service, FREE + 2) == [401] * FREE + [429] * 2
    refused = attempt(service, PASSWORD)
    assert refused.status_code == 429, "the right one has to wait as well"
    assert refused.headers["retry-after"] == "1"
    error = refused.json()["error"]
    assert (error["code"], error["title"]) == (429, "Too Many Requests")
    clock.move(1)
    assert statuses(service, 2) == [401, 429]
    assert attempt(service, "wrong").headers["retry-after"] == "2"
    clock.move(2)
    assert attempt(service, PASSWORD).status_code == 201
    assert statuses(service, FREE) == [401] * FREE, "counted anew after the right one"


def test_known_and_unknown_names_are_throttled_alike(pair: tuple[Running, Clock]) -> None:
    service, _ = pair
    reported = {}
    for name in ("ann", "nobody"):
        reported[name] = [
            attempt(service, "wrong", name=name, domain={"id": "default"}) for _ in range(FREE + 1)
        ]
    seen = {
        name: [(each.status_code, each.text) for each in answers]
        for name, answers in reported.items()
    }
    assert seen["ann"] == seen["nobody"]
    assert seen["ann"][-1][0] == 429


def test_logins_by_id_and_by_name_count_together(pair: tuple[Running, Clock]) -> None:
    service, _ = pair
    user_id = attempt(service, PASSWORD).json()["token"]["user"]["id"]
    assert statuses(service, FREE, id=user_id) == [401] * FREE
    assert attempt(service, "wrong").status_code == 429


def test_clients_at_other_addresses_do_not_wait(pair: tuple[Running, Clock]) -> None:
    service, _ = pair
    assert statuses(service, FREE + 1, source="198.51.100.7")[-1] == 429
    assert attempt(service, PASSWORD, source="203.0.113.9").status_code == 201
    assert attempt(service, PASSWORD, source="198.51.100.7").status_code == 429


def test_only_proxies_may_report_client_addresses(tmp_path: Path) -> None:
    with clocked(tmp_path, trusted_proxies=["192.0.2.0/24"]) as (service, _):
        answers = [
            attempt(service, "wrong", source=f"198.51.100.{n}").status_code for n in range(FREE + 1)
        ]
        assert answers == [401] * FREE + [429]


def test_all_processes_of_a_database_count_together(tmp_path: Path) -> None:
    with clocked(tmp_path) as (first, _), running(tmp_path, auth="builtin") as second:
        assert statuses(first, FREE) == [401] * FREE
        assert statuses(second, 2) == [401] * 2, "it lets five go"
        assert attempt(first, PASSWORD).status_code == 429
        assert attempt(second, PASSWORD).status_code == 429


def test_concurrent_attempts_are_all_counted(pair: tuple[Running, Clock]) -> None:
    service, _ = pair
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: attempt(service, "wrong").status_code, range(12)))
    assert sorted(answers) == [401] * FREE + [429] * (12 - FREE)


def test_guessing_many_names_blocks_no_other_login(pair: tuple[Running, Clock]) -> None:
    service, _ = pair
    threads = service.service.site.passwords

    async def try_many() -> list[bool]:
        async def attempted(number: int, source: str) -> bool:
            try:
                async with threads.turn(number, source):
                    await asyncio.sleep(0.01)
            except Unavailable:
                return False
            return True

        tries = [attempted(number, "a stranger's") for number in range(2 * WAITING_MAX)]
        return await asyncio.gather(*tries, attempted(-1, "somebody else's"))

    *of_one, of_another = asyncio.run(try_many())
    assert of_another
    assert sum(of_one) == WAITING_FROM_ONE_MAX < WAITING_MAX


def test_changing_a_password_obeys_the_same_limit(pair: tuple[Running, Clock]) -> None:
    service, clock = pair
    answer = attempt(service, PASSWORD)
    token, user_id = answer.headers["x-subject-token"], answer.json()["token"]["user"]["id"]
    path = f"/identity/v3/users/{user_id}/password"

    def change(old: str) -> int:
        body = {"user": {"password": "another one", "original_password": old}}
        return int(service.call("POST", path, token, json=body).status_code)

    assert [change("wrong") for _ in range(FREE + 1)] == [401] * FREE + [429]
    assert attempt(service, PASSWORD).status_code == 429
    clock.move(1)
    assert change(PASSWORD) == 204


def test_an_administrator_ends_the_wait_by_a_new_password(pair: tuple[Running, Clock]) -> None:
    service, _ = pair
    statuses(service, FREE)
    assert attempt(service, PASSWORD).status_code == 429
    admin = admin_token(service)
    users = service.call("GET", "/identity/v3/users?name=ann", admin).json()["users"]
    path = f"/identity/v3/users/{users[0]['id']}"
    body = {"user": {"password": "a new one"}}
    assert service.call("PATCH", path, admin, json=body).is_success
    assert attempt(service, "a new one").status_code == 201
