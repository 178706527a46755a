"""The compare-and-update, on every backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import CapacityExceeded, ConcurrentUpdate, ProviderChanged
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim
from innkeeper.store import changes
from innkeeper.store.claims import Freed
from innkeeper.store.queries.placement import allocations, capacity, names
from innkeeper.store.transactions import Store, Tx, step
from innkeeper.systems.placement import claims, inventories, providers
from tests.support.change_feed import changes_since

NOW = datetime(2026, 1, 2, tzinfo=UTC).replace(tzinfo=None)
PROVIDER = "00000000-0000-0000-0000-0000000000a1"
OTHER = "00000000-0000-0000-0000-0000000000a2"


def consumer(number: int) -> ConsumerUuid:
    """The number's consumer."""
    return ConsumerUuid(f"00000000-0000-0000-0000-{number:012}")


def claim_of(
    number: int, amounts: Mapping[ProviderId, Mapping[ClassId, int]], seen: int | None = None
) -> ConsumerClaim:
    """A consumer's requested allocations."""
    generation = None if seen is None else Generation(seen)
    return ConsumerClaim(consumer(number), "project", "user", amounts, generation)


class Cloud:
    """Two providers with 8 VCPU each."""

    def __init__(self, store: Store) -> None:
        self.store = store
        with store.write() as tx:
            self.vcpu = names.class_ids(tx)["VCPU"]
            self.a = self.make(tx, PROVIDER, "a")
            self.b = self.make(tx, OTHER, "b")

    def make(self, tx: Tx, uuid: str, name: str) -> ProviderId:
        """A provider with 8 VCPU, at generation 1."""
        made = providers.create(tx, uuid, name, None, now=NOW)
        inventories.add(tx, uuid, "VCPU", Inventory(total=8), NOW)
        return made.id

    def seen(self, *ids: ProviderId) -> dict[ProviderId, Generation]:
        """The current generations."""
        with self.store.read() as tx:
            return {pid: view.generation for pid, view in capacity.views(tx, ids).items()}

    def used(self, provider_id: ProviderId) -> int:
        """The allocated VCPU."""
        with self.store.read() as tx:
            return capacity.views(tx, [provider_id])[provider_id].used.get(self.vcpu, 0)

    def replace(self, *wanted: ConsumerClaim) -> None:
        """Read, check and commit."""
        with self.store.write() as tx:
            claims.replace(tx, wanted, NOW)


@pytest.fixture
def cloud(store: Store) -> Cloud:
    """A cloud of two providers."""
    return Cloud(store)


def test_a_claim_advances_its_providers_by_one_generation(cloud: Cloud) -> None:
    before = cloud.seen(cloud.a, cloud.b)
    cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 3}}))
    assert cloud.used(cloud.a) == 3
    assert cloud.seen(cloud.a, cloud.b) == {cloud.a: before[cloud.a] + 1, cloud.b: before[cloud.b]}


def test_a_stale_generation_writes_nothing(cloud: Cloud) -> None:
    stale = cloud.seen(cloud.a)
    cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 3}}))
    late = Claim((claim_of(2, {cloud.a: {cloud.vcpu: 6}}),), stale)
    with cloud.store.write() as tx:
        (refusal,) = claims.commit_together(tx, [late], NOW)
    assert isinstance(refusal, ProviderChanged)
    assert cloud.used(cloud.a) == 3


def test_only_the_claimed_provider_advances(cloud: Cloud) -> None:
    """Without the id in the statement, all providers at that generation would advance."""
    assert len(set(cloud.seen(cloud.a, cloud.b).values())) == 1
    cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 1}}))
    assert len(set(cloud.seen(cloud.a, cloud.b).values())) == 2


def test_claims_of_one_batch_succeed_or_fail_independently(cloud: Cloud) -> None:
    seen = cloud.seen(cloud.a, cloud.b)
    batch = [
        Claim((claim_of(1, {cloud.a: {cloud.vcpu: 2}}),), {cloud.a: seen[cloud.a]}),
        Claim((claim_of(2, {cloud.a: {cloud.vcpu: 2}}),), {cloud.a: seen[cloud.a]}),
        Claim((claim_of(3, {cloud.b: {cloud.vcpu: 2}}),), {cloud.b: seen[cloud.b]}),
    ]
    with cloud.store.write() as tx:
        outcomes = claims.commit_together(tx, batch, NOW)
    assert outcomes[0] is None and outcomes[2] is None
    assert isinstance(outcomes[1], ProviderChanged)
    assert (cloud.used(cloud.a), cloud.used(cloud.b)) == (2, 2)


def test_a_claim_of_many_is_all_or_nothing(cloud: Cloud) -> None:
    wanted = [claim_of(1, {cloud.a: {cloud.vcpu: 8}}), claim_of(2, {cloud.b: {cloud.vcpu: 9}})]
    with pytest.raises(CapacityExceeded, match="'VCPU' on resource provider"):
        cloud.replace(*wanted)
    assert (cloud.used(cloud.a), cloud.used(cloud.b)) == (0, 0)


def test_consumers_swap_their_allocations(cloud: Cloud) -> None:
    cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 8}}), claim_of(2, {cloud.b: {cloud.vcpu: 8}}))
    cloud.replace(
        claim_of(1, {cloud.b: {cloud.vcpu: 8}}, 1), claim_of(2, {cloud.a: {cloud.vcpu: 8}}, 1)
    )
    with cloud.store.read() as tx:
        held = allocations.of_consumers(tx, [consumer(1)])
    assert [(each.provider_id, each.used) for each in held] == [(cloud.b, 8)]


@pytest.mark.parametrize("seen", [None, 7])
def test_a_consumer_at_another_generation_is_not_changed(cloud: Cloud, seen: int | None) -> None:
    cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 3}}))
    with pytest.raises(ConcurrentUpdate):
        cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 4}}, seen))
    assert cloud.used(cloud.a) == 3


def test_a_consumer_is_deleted_with_its_last_allocation(cloud: Cloud) -> None:
    cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 3}}))
    cloud.replace(claim_of(1, {}, 1))
    with cloud.store.read() as tx:
        assert allocations.consumers_by_uuid(tx, [consumer(1)]) == {}
    assert cloud.used(cloud.a) == 0


def test_a_release_frees_once_and_advances_no_generation(cloud: Cloud) -> None:
    cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 3}}))
    before = cloud.seen(cloud.a)
    with cloud.store.write() as tx:
        freed = claims.release(tx, [consumer(1)], NOW)
        again = claims.release(tx, [consumer(1)], NOW)
    assert freed == [Freed(consumer(1), cloud.a, cloud.vcpu, 3)]
    assert again == []
    assert cloud.seen(cloud.a) == before


def test_a_step_that_is_rolled_back_leaves_the_others(cloud: Cloud) -> None:
    with cloud.store.write() as tx:
        with step(tx):
            claims.replace(tx, [claim_of(1, {cloud.a: {cloud.vcpu: 2}})], NOW)
        with pytest.raises(CapacityExceeded), step(tx):
            claims.replace(tx, [claim_of(2, {cloud.a: {cloud.vcpu: 2}})], NOW)
            claims.replace(tx, [claim_of(3, {cloud.a: {cloud.vcpu: 9}})], NOW)
    assert cloud.used(cloud.a) == 2


def test_a_shrunk_inventory_accepts_claims_without_a_gain(cloud: Cloud) -> None:
    cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 8}}))
    with cloud.store.write() as tx:
        seen = providers.get(tx, PROVIDER).generation
        inventories.change(tx, PROVIDER, "VCPU", seen, Inventory(total=4), NOW)
    cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 7}}, 1))
    with pytest.raises(CapacityExceeded):
        cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 8}}, 2))
    assert cloud.used(cloud.a) == 7


@pytest.mark.parametrize(("amount", "is_given"), [(5, True), (10, True), (20, True), (6, False)])
def test_the_smallest_amount_need_not_be_a_step(cloud: Cloud, amount: int, is_given: bool) -> None:
    with cloud.store.write() as tx:
        disk = names.class_ids(tx)["DISK_GB"]
        has = Inventory(total=1000, min_unit=5, max_unit=1000, step_size=10)
        inventories.add(tx, PROVIDER, "DISK_GB", has, NOW)
    wanted = claim_of(1, {cloud.a: {disk: amount}})
    if is_given:
        cloud.replace(wanted)
    else:
        with pytest.raises(CapacityExceeded, match="violate inventory constraints"):
            cloud.replace(wanted)


def test_every_claim_and_release_is_in_the_feed(cloud: Cloud) -> None:
    with cloud.store.read() as tx:
        before = changes.newest(tx)
    cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 3}}))
    with cloud.store.write() as tx:
        claims.release(tx, [consumer(1)], NOW)
    with cloud.store.read() as tx:
        assert changes_since(tx, before) == [(cloud.a, 2), (cloud.a, changes.ALWAYS_READ)]


def test_commits_are_visible_to_the_next_process(cloud: Cloud, opened: Callable[[], Store]) -> None:
    cloud.replace(claim_of(1, {cloud.a: {cloud.vcpu: 3}}))
    with pytest.raises(RuntimeError, match="dies"), cloud.store.write() as tx:
        claims.replace(tx, [claim_of(2, {cloud.a: {cloud.vcpu: 3}})], NOW)
        raise RuntimeError("the process dies")
    cloud.store.dispose()
    with opened().read() as tx:
        view = capacity.views(tx, [cloud.a])[cloud.a]
        assert allocations.consumers_by_uuid(tx, [consumer(2)]) == {}
    assert (view.used, view.generation) == ({cloud.vcpu: 3}, 2)


def test_racing_writers_do_not_overcommit(cloud: Cloud, opened: Callable[[], Store]) -> None:
    """Twelve independent claims of one unit each, for eight units."""

    def race(number: int) -> bool:
        try:
            with stores[number % len(stores)].write() as tx:
                claims.replace(tx, [claim_of(number, {cloud.a: {cloud.vcpu: 1}})], NOW)
        except CapacityExceeded:
            return False
        return True

    stores = [opened() for _ in range(3)]
    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(race, range(1, 13)))
    assert (sum(won), cloud.used(cloud.a)) == (8, 8)
    assert cloud.seen(cloud.a) == {cloud.a: 9}
