"""Claims that read in one transaction and write in another can be overtaken, and retry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import CapacityExceeded, ConcurrentUpdate, Overtaken
from innkeeper.domain.ids import ClassId, ConsumerUuid, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim
from innkeeper.engine.retry import ALLOCATIONS, again
from innkeeper.store.queries.placement import capacity, names
from innkeeper.store.transactions import Store
from innkeeper.systems.placement import claims, inventories, providers

NOW = datetime(2026, 1, 2, tzinfo=UTC).replace(tzinfo=None)
PROVIDER = "00000000-0000-0000-0000-0000000000a1"
TOTAL = 4
ATTEMPTS_MAX = 3


class Race:
    """A claimant, and a second writer that is faster a given number of times."""

    def __init__(self, open_store: Callable[[], Store], overtakes: int) -> None:
        self.near, self.far = open_store(), open_store()
        self.overtakes = overtakes
        self.attempts = 0
        self.rivals = 0
        with self.far.write() as tx:
            self.provider: ProviderId = providers.create(tx, PROVIDER, "a", None, now=NOW).id
            inventories.add(tx, PROVIDER, "VCPU", Inventory(TOTAL), NOW)
            self.vcpu: ClassId = names.class_ids(tx)["VCPU"]

    def one(self, name: str) -> ConsumerClaim:
        """A consumer of one unit."""
        uuid = ConsumerUuid(f"{name}0000000-0000-0000-0000-{self.rivals:012}")
        return ConsumerClaim(uuid, "p", "u", {self.provider: {self.vcpu: 1}}, None)

    async def attempt(self) -> None:
        """Read, let the second writer write if it is its turn, and write the claim."""
        self.attempts += 1
        with self.near.read() as tx:
            views = capacity.views(tx, [self.provider])
        wanted = self.one("a")
        if claims.find_misfit(views, [wanted], {}) is not None:
            raise CapacityExceeded("There is nothing left.")
        if self.attempts <= self.overtakes:
            self.rivals += 1
            with self.far.write() as tx:
                claims.replace(tx, [self.one("b")], NOW)
        seen = {self.provider: views[self.provider].generation}
        with self.near.write() as tx:
            (refusal,) = claims.commit_together(tx, [Claim((wanted,), seen)], NOW)
        if refusal is not None:
            raise refusal

    def run(self) -> None:
        """Try up to so many times."""
        with capture_logs():
            asyncio.run(again(self.attempt, ALLOCATIONS, ATTEMPTS_MAX))

    def used(self) -> int:
        """The usage."""
        with self.near.read() as tx:
            return capacity.views(tx, [self.provider])[self.provider].used.get(self.vcpu, 0)


@pytest.mark.parametrize("overtakes", range(ATTEMPTS_MAX))
def test_a_retry_succeeds(opened: Callable[[], Store], overtakes: int) -> None:
    race = Race(opened, overtakes)
    race.run()
    assert race.attempts == overtakes + 1
    assert race.used() == overtakes + 1


def test_retries_are_bounded(opened: Callable[[], Store]) -> None:
    race = Race(opened, ATTEMPTS_MAX)
    with pytest.raises(ConcurrentUpdate) as caught:
        race.run()
    assert not isinstance(caught.value, Overtaken)
    assert race.attempts == ATTEMPTS_MAX
    assert race.used() == race.rivals == ATTEMPTS_MAX


def test_a_retry_may_find_no_capacity(opened: Callable[[], Store]) -> None:
    race = Race(opened, 1)
    with race.far.write() as tx:
        inventories.change(tx, PROVIDER, "VCPU", 1, Inventory(1), NOW)
    with pytest.raises(CapacityExceeded):
        race.run()
    assert race.attempts == 2
    assert race.used() == 1
