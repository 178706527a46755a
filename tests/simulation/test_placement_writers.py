"""Many clients of the Placement API at once, on one service or two with the same database.

Always true, at every moment: the usage of a provider is within its capacity. At the end:
acknowledged writes exist, and each consumer's generation counts each of its writes once.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from random import Random
from threading import Barrier, Event
from typing import Any

import pytest

from tests.support.running import Running, running

VERSION = {"openstack-api-version": "placement 1.39", "x-roles": "admin,service"}
HOST = "00000000-0000-4000-8000-0000000000a1"
CARD = "00000000-0000-4000-8000-0000000000a2"
CAPACITY = 20
THREADS = 8
WRITES_EACH = 12
SHARED = tuple(f"00000000-0000-4000-8000-0000000000c{n}" for n in range(3))
"""Consumers that all threads write; each thread has one of its own besides."""
CONFLICT = "placement.concurrent_update"
LOST = "concurrently updated"
"""The text for a write with too many conflicts; it must not occur here."""


@pytest.fixture(params=[1, 2], ids=["one service", "two services"])
def services(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sequence[Running]]:
    """Services on one database, where the host and its card are."""
    with ExitStack() as stack:
        started = [stack.enter_context(running(tmp_path)) for _ in range(request.param)]
        for each, parent in ((HOST, None), (CARD, HOST)):
            body = {"name": each, "uuid": each, "parent_provider_uuid": parent}
            assert ask(started[0], "POST", "/resource_providers", body).is_success
        resize(started[0], HOST, {"VCPU": CAPACITY, "VGPU": 4})
        resize(started[0], CARD, {"VCPU": CAPACITY})
        yield started


def ask(service: Running, method: str, path: str, body: Any = None) -> Any:
    """Send one request to the Placement API."""
    more = {} if body is None else {"json": body}
    return service.call(method, f"/placement{path}", headers=VERSION, **more)


def resize(service: Running, provider: str, totals: dict[str, int]) -> None:
    """Set a provider's inventory."""
    body = {
        "resource_provider_generation": 0,
        "inventories": {name: {"total": total} for name, total in totals.items()},
    }
    path = f"/resource_providers/{provider}/inventories"
    assert ask(service, "PUT", path, body).is_success


def holding(amounts: dict[str, dict[str, int]], seen: int | None) -> dict[str, Any]:
    """The body that sets a consumer's allocations."""
    return {
        "allocations": {each: {"resources": resources} for each, resources in amounts.items()},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": seen,
        "consumer_type": "INSTANCE",
    }


def code_of(answer: Any) -> str:
    """The code of an error."""
    return str(answer.json()["errors"][0]["code"])


@contextmanager
def watched(service: Running) -> Iterator[None]:
    """Check all the time whether more is held than there is."""
    is_over = Event()

    def watch() -> int:
        looks = 0
        while not is_over.is_set():
            for each in (HOST, CARD):
                usages = ask(service, "GET", f"/resource_providers/{each}/usages").json()
                assert usages["usages"].get("VCPU", 0) <= CAPACITY
                looks += 1
        return looks

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        try:
            yield
        finally:
            is_over.set()
        assert watching.result() > 0


def all_at_once(act: Callable[[int], Any]) -> list[Any]:
    """Call this in every thread; all begin together."""
    start = Barrier(THREADS)

    def work(number: int) -> Any:
        start.wait()
        return act(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return [run.result() for run in [pool.submit(work, n) for n in range(THREADS)]]


class Writer:
    """One client: writes its own consumer and the shared ones, and records the
    answers."""

    def __init__(self, service: Running, number: int) -> None:
        self.service = service
        self.random = Random(number)  # noqa: S311 - a draw, no secret
        self.own = str(uuid.UUID(int=number + 1))
        self.generation: int | None = None
        self.held: dict[str, dict[str, int]] = {}
        self.written: Counter[str] = Counter()
        self.moves: Counter[str] = Counter()

    def run(self) -> Writer:
        """Write repeatedly."""
        for _ in range(WRITES_EACH):
            if self.random.random() < 0.5:
                self.write_own()
            else:
                self.write_shared()
        return self

    def amounts(self, most: int) -> dict[str, dict[str, int]]:
        """A random amount of one provider."""
        return {self.random.choice([HOST, CARD]): {"VCPU": self.random.randint(1, most)}}

    def write_own(self) -> None:
        """No other client writes this consumer, so only capacity can reject the write."""
        amounts = self.amounts(CAPACITY // 3)
        body = holding(amounts, self.generation)
        answer = ask(self.service, "PUT", f"/allocations/{self.own}", body)
        if answer.status_code == HTTPStatus.NO_CONTENT:
            self.count(self.held, amounts)
            self.held = amounts
            self.generation = (self.generation or 0) + 1
        else:
            assert answer.status_code == HTTPStatus.CONFLICT, answer.text
            assert code_of(answer) != CONFLICT, answer.text

    def write_shared(self) -> None:
        """Two shared consumers in one request: both are written, or none."""
        wanted = {}
        before: dict[str, dict[str, int]] = {}
        after: dict[str, dict[str, int]] = {}
        for each in self.random.sample(SHARED, 2):
            found = ask(self.service, "GET", f"/allocations/{each}").json()
            before |= found["allocations"]
            amounts = self.amounts(2)
            after |= amounts
            wanted[each] = holding(amounts, found.get("consumer_generation"))
        answer = ask(self.service, "POST", "/allocations", wanted)
        if answer.status_code == HTTPStatus.NO_CONTENT:
            self.written.update(wanted.keys())
            self.count(before, after)
        else:
            assert answer.status_code == HTTPStatus.CONFLICT, answer.text
            assert LOST not in answer.text

    def count(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Count one write for each provider that is named, because its generation advances once."""
        self.moves.update(before.keys() | after.keys())


def test_writers_of_allocations(services: Sequence[Running]) -> None:
    with watched(services[-1]):
        writers = all_at_once(lambda n: Writer(services[n % len(services)], n).run())
    service = services[-1]
    used: Counter[str] = Counter()
    for writer in writers:
        found = ask(service, "GET", f"/allocations/{writer.own}").json()
        held = {each: line["resources"] for each, line in found["allocations"].items()}
        assert held == writer.held
        assert found.get("consumer_generation") == writer.generation
        used.update({each: line["VCPU"] for each, line in held.items()})
    written = sum((writer.written for writer in writers), Counter[str]())
    assert written, "nobody got anything shared written"
    for each in SHARED:
        found = ask(service, "GET", f"/allocations/{each}").json()
        assert found.get("consumer_generation", 0) == written[each]
        for provider, line in found["allocations"].items():
            used[provider] += line["resources"]["VCPU"]
    moves = sum((writer.moves for writer in writers), Counter[str]())
    for each in (HOST, CARD):
        usages = ask(service, "GET", f"/resource_providers/{each}/usages").json()
        assert usages["usages"]["VCPU"] == used[each] <= CAPACITY
        # One step for the inventory, and one for each write of allocations.
        assert usages["resource_provider_generation"] == 1 + moves[each]


def test_reshapers(services: Sequence[Running]) -> None:
    """All threads move the same units to and fro. The units are always in exactly one place."""
    server = SHARED[0]
    body = holding({HOST: {"VGPU": 2}}, None)
    assert ask(services[0], "PUT", f"/allocations/{server}", body).is_success

    def move(service: Running) -> bool:
        found = {each: inventories_of(service, each) for each in (HOST, CARD)}
        source, target = (HOST, CARD) if "VGPU" in found[HOST]["inventories"] else (CARD, HOST)
        has = found[source]["inventories"].pop("VGPU", None)
        if has is None:
            # Between the two reads another thread has moved them.
            return False
        found[target]["inventories"]["VGPU"] = has
        seen = ask(service, "GET", f"/allocations/{server}").json()["consumer_generation"]
        requests = {server: holding({target: {"VGPU": 2}}, seen)}
        body = {"inventories": found, "allocations": requests}
        answer = ask(service, "POST", "/reshaper", body)
        if answer.status_code == HTTPStatus.NO_CONTENT:
            return True
        assert answer.status_code == HTTPStatus.CONFLICT, answer.text
        assert code_of(answer) == CONFLICT, answer.text
        return False

    def work(number: int) -> int:
        service = services[number % len(services)]
        return sum(move(service) for _ in range(WRITES_EACH))

    moved = sum(all_at_once(work))
    assert moved > 0
    found = ask(services[-1], "GET", f"/allocations/{server}").json()
    assert found["consumer_generation"] == 1 + moved
    place = CARD if moved % 2 else HOST
    assert {each: line["resources"] for each, line in found["allocations"].items()} == {
        place: {"VGPU": 2}
    }
    for each in (HOST, CARD):
        has = inventories_of(services[-1], each)["inventories"]
        assert ("VGPU" in has) == (each == place)
        usages = ask(services[-1], "GET", f"/resource_providers/{each}/usages").json()["usages"]
        assert usages.get("VGPU", 0) == (2 if each == place else 0)


def inventories_of(service: Running, provider: str) -> dict[str, Any]:
    """A provider's inventories, and its generation."""
    path = f"/resource_providers/{provider}/inventories"
    found: dict[str, Any] = ask(service, "GET", path).json()
    return found
