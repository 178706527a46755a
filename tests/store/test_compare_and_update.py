"""On every backend, the update of a generation suffices to reject the later of two writers.

Usually, a writer also waits for its turn, reads the generations before the update, and checks the
capacity after it. These tests switch all these guards off. Only the comparison in the statement,
and the check of its row count, can reject the later writer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import Overtaken
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim
from innkeeper.store import claims
from innkeeper.store.guards import Guards
from innkeeper.store.queries.placement import allocations, capacity, names
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.placement import inventories, providers

NOW = datetime(2026, 1, 2, tzinfo=UTC).replace(tzinfo=None)
TOTAL = 8
WITHIN_S = 60.0
ONLY_THE_UPDATE = Guards(turns=False, capacity=False)
MEETING = pytest.mark.parametrize("meet", ["behind the commit", "before the commit"])


class Rivals:
    """Two processes on one database with two providers of 8 VCPU each."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self.store = open_store()
        self.near, self.far = (
            Store(each.backend, each.engines, ONLY_THE_UPDATE)
            for each in (open_store(), open_store())
        )
        with self.store.write() as tx:
            self.vcpu: ClassId = names.class_ids(tx)["VCPU"]
            self.a, self.b = (self._provider(tx, name) for name in ("a", "b"))
        with self.store.read() as tx:
            views = capacity.views(tx, [self.a, self.b])
        self.seen = {provider_id: view.generation for provider_id, view in views.items()}

    def _provider(self, tx: Tx, name: str) -> ProviderId:
        uuid = f"{name}0000000-0000-0000-0000-000000000000"
        made = providers.create(tx, uuid, name, None, now=NOW)
        inventories.add(tx, uuid, "VCPU", Inventory(TOTAL), NOW)
        return made.id

    def claim(
        self, number: int, amounts: Mapping[ProviderId, int], seen: int | None = None
    ) -> Claim:
        """A claim at the generations of the start."""
        taken = {provider_id: {self.vcpu: used} for provider_id, used in amounts.items()}
        consumer = ConsumerClaim(
            consumer_uuid(number), "p", "u", taken, None if seen is None else Generation(seen)
        )
        return Claim((consumer,), {provider_id: self.seen[provider_id] for provider_id in taken})

    def meet(self, first: Claim, second: Claim, meet: str) -> None:
        """Commit the first claim; the second reaches its update before or after that commit."""
        comes = threading.Event()

        def come_second() -> None:
            with self.far.write() as tx:
                comes.set()
                write(tx, second)

        with ThreadPoolExecutor(1) as pool:
            with self.near.write() as tx:
                write(tx, first)
                if meet == "before the commit":
                    # The second update waits for this transaction, or follows it.
                    later = pool.submit(come_second)
                    assert comes.wait(WITHIN_S)
            if meet == "behind the commit":
                later = pool.submit(come_second)
            later.result(WITHIN_S)

    def generations(self) -> dict[ProviderId, int]:
        """How far the providers' generations have advanced."""
        with self.store.read() as tx:
            views = capacity.views(tx, [self.a, self.b])
        return {each: views[each].generation - self.seen[each] for each in (self.a, self.b)}

    def held(self, *numbers: int) -> list[tuple[ConsumerUuid, ProviderId, int]]:
        """The allocations of these consumers."""
        with self.store.read() as tx:
            found = allocations.of_consumers(tx, [consumer_uuid(each) for each in numbers])
        return [(each.consumer_uuid, each.provider_id, each.used) for each in found]

    def consumers(self, *numbers: int) -> dict[ConsumerUuid, int]:
        """The generations of these consumers, if they exist."""
        with self.store.read() as tx:
            found = allocations.consumers_by_uuid(tx, [consumer_uuid(each) for each in numbers])
        return {uuid: each.generation for uuid, each in found.items()}


def consumer_uuid(number: int) -> ConsumerUuid:
    """The number's consumer."""
    return ConsumerUuid(f"c0000000-0000-0000-0000-{number:012}")


def write(tx: Tx, claim: Claim) -> None:
    """Write a claim as if this transaction had read its generations."""
    assert claims.commit_together(tx, [claim], NOW, are_read_here=True) == [None]


@pytest.fixture
def rivals(opened: Callable[[], Store]) -> Rivals:
    """Two processes."""
    return Rivals(opened)


@MEETING
def test_of_two_claims_at_one_generation_the_first_succeeds(rivals: Rivals, meet: str) -> None:
    first, second = (rivals.claim(number, {rivals.a: 6}) for number in (1, 2))
    with pytest.raises(Overtaken):
        rivals.meet(first, second, meet)
    assert rivals.held(1, 2) == [(consumer_uuid(1), rivals.a, 6)]
    assert rivals.generations() == {rivals.a: 1, rivals.b: 0}
    assert rivals.consumers(1, 2) == {consumer_uuid(1): 1}


@MEETING
@pytest.mark.parametrize("taken", ["a", "b"])
def test_one_changed_provider_of_several_rejects_the_claim(
    rivals: Rivals, meet: str, taken: str
) -> None:
    provider_id = {"a": rivals.a, "b": rivals.b}[taken]
    first = rivals.claim(1, {provider_id: 6})
    second = rivals.claim(2, {rivals.a: 6, rivals.b: 6})
    with pytest.raises(Overtaken):
        rivals.meet(first, second, meet)
    assert rivals.held(1, 2) == [(consumer_uuid(1), provider_id, 6)]
    assert rivals.generations() == {rivals.a: 0, rivals.b: 0} | {provider_id: 1}


@MEETING
def test_of_two_claims_of_one_consumer_the_first_succeeds(rivals: Rivals, meet: str) -> None:
    with rivals.near.write() as tx:
        write(tx, rivals.claim(1, {rivals.a: 1}))
    rivals.seen[rivals.a] = Generation(rivals.seen[rivals.a] + 1)
    # The claims name different providers, so the providers' generations reject neither claim.
    first, second = (rivals.claim(1, {each: 6}, seen=1) for each in (rivals.a, rivals.b))
    with pytest.raises(Overtaken):
        rivals.meet(first, second, meet)
    assert rivals.held(1) == [(consumer_uuid(1), rivals.a, 6)]
    assert rivals.consumers(1) == {consumer_uuid(1): 2}
    assert rivals.generations() == {rivals.a: 1, rivals.b: 0}
