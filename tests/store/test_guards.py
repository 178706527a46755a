"""The capacity check rejects claims that the generations would accept; both are needed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import Overtaken, ProviderChanged
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim
from innkeeper.store import claims
from innkeeper.store.guards import NO_GUARDS, Guards
from innkeeper.store.queries.placement import allocations, capacity, names
from innkeeper.store.tables.placement import consumers
from innkeeper.store.transactions import Store
from innkeeper.systems.placement import inventories, providers, repair, transfers
from innkeeper.systems.placement.transfers import TransferSide

NOW = datetime(2026, 1, 2, tzinfo=UTC).replace(tzinfo=None)
PROVIDER = "00000000-0000-0000-0000-0000000000a1"
TOTAL = 4
ONLY_THE_COUNT = Guards(generations=False)


class House:
    """One provider, and consumers of it."""

    def __init__(self, opened: Store, guards: Guards) -> None:
        self.store = Store(opened.backend, opened.engines, guards)
        with self.store.write() as tx:
            self.provider: ProviderId = providers.create(tx, PROVIDER, "a", None, now=NOW).id
            inventories.add(tx, PROVIDER, "VCPU", Inventory(TOTAL), NOW)
            self.vcpu: ClassId = names.class_ids(tx)["VCPU"]

    def shrink(self, total: int) -> None:
        """The operator shrinks the inventory, whatever its usage."""
        with self.store.write() as tx:
            seen = providers.get(tx, PROVIDER).generation
            inventories.change(tx, PROVIDER, "VCPU", seen, Inventory(total), NOW)

    def claim(self, seen: int, wanted: Mapping[int, int]) -> None:
        """Commit amounts by consumer at a generation; 0 releases all."""
        with self.store.write() as tx:
            uuids = {number: consumer(number) for number in wanted}
            known = allocations.consumers_by_uuid(tx, uuids.values())
            ready = [
                ConsumerClaim(
                    uuid,
                    "project",
                    "user",
                    {self.provider: {self.vcpu: wanted[number]}} if wanted[number] else {},
                    known[uuid].generation if uuid in known else None,
                )
                for number, uuid in uuids.items()
            ]
            claim = Claim(tuple(ready), {self.provider: Generation(seen)})
            (refusal,) = claims.commit_together(tx, [claim], NOW)
            if refusal is not None:
                raise refusal

    @property
    def used(self) -> int:
        """The usage."""
        with self.store.read() as tx:
            return capacity.views(tx, [self.provider])[self.provider].used.get(self.vcpu, 0)

    @property
    def generation(self) -> int:
        """The provider's generation."""
        with self.store.read() as tx:
            return providers.get(tx, PROVIDER).generation


def consumer(number: int) -> ConsumerUuid:
    """An id."""
    return ConsumerUuid(f"b0000000-0000-0000-0000-{number:012}")


def test_a_stale_claim_is_rejected_by_its_generation(store: Store) -> None:
    house = House(store, Guards())
    house.claim(1, {1: 3})
    with pytest.raises(ProviderChanged):
        house.claim(1, {2: 3})
    assert house.used == 3


def test_without_generations_the_capacity_check_rejects_it(store: Store) -> None:
    house = House(store, ONLY_THE_COUNT)
    house.claim(1, {1: 3})
    with capture_logs() as logs, pytest.raises(Overtaken):
        house.claim(1, {2: 3})
    assert [each["event"] for each in logs] == ["claims_beyond_capacity"]
    assert house.used == 3
    assert house.generation == 2
    house.claim(1, {2: 1})
    assert house.used == TOTAL


def test_without_guards_a_provider_is_overcommitted(store: Store) -> None:
    house = House(store, NO_GUARDS)
    house.claim(1, {1: 3})
    house.claim(1, {2: 3})
    assert house.used == 6


def test_a_provider_over_capacity_may_keep_and_lose_allocations_but_not_gain(store: Store) -> None:
    house = House(store, ONLY_THE_COUNT)
    house.claim(1, {1: 3, 2: 1})
    house.shrink(2)
    house.claim(3, {1: 3})
    house.claim(4, {1: 1, 2: 3})
    house.claim(5, {3: 3, 2: 0})
    with capture_logs(), pytest.raises(Overtaken):
        house.claim(6, {1: 2})
    with capture_logs(), pytest.raises(Overtaken):
        house.claim(6, {4: 1})
    house.claim(6, {3: 2})
    assert house.used == 3


def test_a_removed_inventory_cannot_be_claimed(store: Store) -> None:
    house = House(store, ONLY_THE_COUNT)
    with store.write() as tx:
        inventories.remove(tx, PROVIDER, "VCPU", NOW)
    with capture_logs(), pytest.raises(Overtaken):
        house.claim(2, {1: 1})
    assert house.used == 0


def test_an_overcommitted_allocation_may_be_moved_and_repaired(store: Store) -> None:
    house = House(store, Guards())
    house.claim(1, {1: 3, 2: 1})
    house.shrink(1)
    giver, taker = (TransferSide(consumer(number), "p", "u", "INSTANCE") for number in (1, 2))
    with house.store.write() as tx:
        transfers.swap(tx, giver, taker, NOW)
        tx.execute(consumers.delete().where(consumers.c.uuid == giver.uuid))
        told = repair.adopt(tx, [giver.uuid], {}, NOW)
    assert len(told) == 1
    assert house.used == TOTAL
