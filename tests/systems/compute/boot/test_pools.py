"""Servers with disks in pools: their claims, failures and releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.compute import Booted
from innkeeper.domain.errors import Busy, Conflict, InUse
from innkeeper.domain.hosts import HostReport
from innkeeper.domain.ids import ProviderUuid, ServerId
from innkeeper.domain.slices import Scheduling
from innkeeper.engine.batches import PendingCommand, carry_out
from innkeeper.engine.commands import Boot, Write
from innkeeper.store.queries.compute import hosts as host_rows
from innkeeper.store.queries.compute import servers
from innkeeper.store.queries.placement import registration
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts import inventories as host_inventories
from innkeeper.systems.compute.servers.servers import Failed, fail_builds, finish_deletes
from innkeeper.systems.placement import inventories, providers, traits
from tests.support.clouds import NOW, Cloud, cloud_in, faults, reported
from tests.support.clouds import inventories as inventories_of
from tests.support.failing_commits import FailingCommits
from tests.support.pools import RACK, ROW, add_pool, holdings, join, pool_uuid, resize, used

CHILD = "45000000-0000-4000-8000-000000000000"
OTHER = "45000000-0000-4000-8000-000000000001"


def diskless(number: int, **more: int) -> HostReport:
    """A host without disks of its own, and otherwise room for four small servers."""
    has = inventories_of(VCPU=4, MEMORY_MB=4096, **more)
    return HostReport(f"h{number}", has, provider_uuid=host_uuid(number))


def host_uuid(number: int) -> ProviderUuid:
    """The provider of a host."""
    return ProviderUuid(f"40000000-0000-4000-8000-{number:012}")


def join_all(tx: Tx) -> None:
    """All hosts are in the pool's aggregate."""
    for number in range(10):
        join(tx, host_uuid(number), RACK)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """Ten hosts without disks, and one pool of 100 GB for all of them."""
    started = cloud_in(tmp_path, *(diskless(number) for number in range(10)))
    started.write(join_all)
    started.write(add_pool)
    yield started
    started.reread()
    started.judge()
    started.close()


def boot(cloud: Cloud, *args: int, **more: Any) -> Booted:
    """Boot one request."""
    (outcome,) = cloud.boot(cloud.request(*args, **more))
    assert isinstance(outcome, Booted), outcome
    return outcome


def of(cloud: Cloud, server: ServerId) -> dict[str, dict[str, int]]:
    """What a server holds."""
    found: dict[str, dict[str, int]] = cloud.read(lambda tx: holdings(tx, server))
    return found


def pool_used(cloud: Cloud, number: int = 0) -> int:
    """The used amount of a pool's disks."""
    amount: int = cloud.read(lambda tx: used(tx, pool_uuid(number)))["DISK_GB"]
    return amount


def test_a_server_holds_something_of_its_host_and_of_its_pool(cloud: Cloud) -> None:
    booted = boot(cloud, forced_host="h3", is_admin=True)
    before = cloud.read(lambda tx: providers.get(tx, pool_uuid()).generation)
    assert of(cloud, booted.server_ids[0]) == {
        host_uuid(3): {"VCPU": 1, "MEMORY_MB": 1024},
        pool_uuid(): {"DISK_GB": 10},
    }
    boot(cloud)
    assert cloud.read(lambda tx: providers.get(tx, pool_uuid()).generation) == before + 1


def test_the_servers_of_one_request_do_not_oversell_their_hosts_pool(cloud: Cloud) -> None:
    """The hosts have room for twelve, but the pool for fewer."""
    booted = boot(cloud, 1, 12)
    assert len(booted.server_ids) == 10
    assert pool_used(cloud) == 100
    (fault,) = faults([boot(cloud)])
    assert fault is not None
    assert "DISK_GB: 10 requested, at most 0 left on one host and 0 in one pool" in fault


def test_many_requests_in_one_transaction_do_not_oversell_a_pool(cloud: Cloud) -> None:
    outcomes = cloud.boot(*(cloud.request(3) for _ in range(5)))
    assert [each is None for each in faults(outcomes)] == [True, True, True, False, False]
    assert pool_used(cloud) == 90


def test_two_processes_do_not_oversell_a_pool(cloud: Cloud) -> None:
    other = cloud.beside()
    assert len(boot(cloud, 1, 6).server_ids) == 6
    assert len(boot(other, 1, 6).server_ids) == 4
    assert faults([boot(cloud)]) != [None]
    other.judge()
    other.close()


def test_deleting_releases_host_and_pool(cloud: Cloud) -> None:
    booted = boot(cloud, 10)
    cloud.write(lambda tx: finish_deletes(tx, booted.server_ids[:4], NOW))
    assert pool_used(cloud) == 60
    assert len(boot(cloud, 1, 9).server_ids) == 4


def test_a_failed_build_releases_host_and_pool(cloud: Cloud) -> None:
    booted = boot(cloud, forced_host="h1", is_admin=True)
    failed = Failed(booted.server_ids[0], "h1", "smoke")
    cloud.write(lambda tx: fail_builds(tx, [failed], NOW))
    assert of(cloud, booted.server_ids[0]) == {}
    assert pool_used(cloud) == 0


def test_a_rejected_request_leaves_the_pool_unchanged(cloud: Cloud) -> None:
    assert faults([boot(cloud, 11)]) != [None]
    assert pool_used(cloud) == 0
    assert len(boot(cloud, 10).server_ids) == 10


def test_the_next_decision_sees_a_pool_drained_by_other_processes(cloud: Cloud) -> None:
    other = cloud.beside()
    other.write(lambda tx: resize(tx, pool_uuid(), DISK_GB=Inventory(20)))
    assert len(boot(cloud, 1, 9).server_ids) == 2
    other.write(lambda tx: resize(tx, pool_uuid(), DISK_GB=Inventory(40, reserved=10)))
    assert len(boot(cloud, 1, 9).server_ids) == 1
    other.close()


def make_a_host(tx: Tx) -> None:
    """No API does this: the pool's provider is marked as one that holds servers."""
    registration.set_hosting(tx, [providers.get(tx, pool_uuid()).id], can_host=True)
    providers.rename(tx, pool_uuid(), "no pool", NOW)


LOSSES: dict[str, Callable[[Tx], object]] = {
    "trait": lambda tx: traits.replace(tx, pool_uuid(), None, set(), NOW),
    "aggregate": lambda tx: join(tx, pool_uuid(), ROW),
    "inventory": lambda tx: inventories.remove_all(tx, pool_uuid(), NOW),
    "provider": lambda tx: providers.delete(tx, pool_uuid(), NOW),
    "can_host": make_a_host,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_former_pool_lends_nothing(cloud: Cloud, loss: str) -> None:
    assert faults([cloud.boot(cloud.request())[0]]) == [None]
    servers_there = cloud.read(lambda tx: host_rows.servers_on(tx, [f"h{n}" for n in range(10)]))
    cloud.write(lambda tx: finish_deletes(tx, [row.uuid for row in servers_there], NOW))
    cloud.write(LOSSES[loss])
    assert faults([boot(cloud)]) != [None]
    cloud.judge()


def test_a_host_outside_the_aggregate_is_not_served(cloud: Cloud) -> None:
    cloud.write(lambda tx: join(tx, host_uuid(2)))
    assert faults([boot(cloud, forced_host="h2", is_admin=True)]) != [None]
    assert faults([boot(cloud, forced_host="h1", is_admin=True)]) == [None]


def test_any_provider_of_a_hosts_tree_puts_it_into_an_aggregate(cloud: Cloud) -> None:
    child = "45000000-0000-4000-8000-000000000000"
    cloud.write(lambda tx: join(tx, host_uuid(2)))
    cloud.write(lambda tx: join(tx, host_uuid(3)))
    cloud.write(lambda tx: providers.create(tx, child, "child", host_uuid(2), now=NOW))
    cloud.write(lambda tx: join(tx, child, RACK))
    assert faults([boot(cloud, forced_host="h2", is_admin=True)]) == [None]
    # The child moves, together with its allocations and aggregates.
    cloud.write(lambda tx: providers.hang(tx, child, host_uuid(3), NOW))
    assert faults([boot(cloud, forced_host="h2", is_admin=True)]) != [None]
    assert faults([boot(cloud, forced_host="h3", is_admin=True)]) == [None]
    cloud.write(lambda tx: providers.delete(tx, child, NOW))
    assert faults([boot(cloud, forced_host="h3", is_admin=True)]) != [None]
    # The providers above it move, too.
    cloud.write(lambda tx: providers.create(tx, child, "rack", None, now=NOW))
    cloud.write(lambda tx: join(tx, child, RACK))
    cloud.write(lambda tx: providers.hang(tx, host_uuid(3), child, NOW))
    assert faults([boot(cloud, forced_host="h3", is_admin=True)]) == [None]
    cloud.judge()


def test_nested_hosts_join_and_leave_with_their_parents(cloud: Cloud) -> None:
    for number in (2, 3):
        cloud.write(partial(join_nothing, number=number))
    cloud.write(lambda tx: providers.hang(tx, host_uuid(3), host_uuid(2), NOW))
    for joins, other in ((2, 3), (3, 2)):
        there = partial(boot, cloud, forced_host=f"h{other}", is_admin=True)
        assert faults([there()]) != [None]
        cloud.write(partial(join_only, number=joins, aggregate=RACK))
        assert faults([there()]) == [None]
        cloud.write(partial(join_nothing, number=joins))
        assert faults([there()]) != [None]
    cloud.judge()


def test_aggregates_without_members_are_dropped(cloud: Cloud) -> None:
    """A host joins and leaves many aggregates, which then have no members."""
    for number in range(300):
        lease = f"61000000-0000-4000-8000-{number:012}"
        cloud.write(partial(join_only, number=0, aggregate=lease))
        cloud.reread()
    assert cloud.table.pools.code_count < 100
    cloud.write(partial(join_only, number=0, aggregate=RACK))
    assert faults([boot(cloud, forced_host="h0", is_admin=True)]) == [None]


def hang_below_another(tx: Tx) -> None:
    """The provider below the second host moves below the third."""
    providers.hang(tx, CHILD, host_uuid(3), NOW)


def make_another(tx: Tx) -> None:
    """The third host gets a new provider below it."""
    providers.create(tx, OTHER, "other", host_uuid(3), now=NOW)
    join(tx, OTHER, RACK)


def hang_a_host_below(tx: Tx) -> None:
    """The third host is put below the second host, which the pool serves."""
    providers.hang(tx, host_uuid(3), host_uuid(2), NOW)


@pytest.mark.parametrize("change", [hang_below_another, make_another, hang_a_host_below])
def test_memberships_that_were_rolled_back_are_dropped(
    cloud: Cloud, change: Callable[[Tx], None]
) -> None:
    for number in (2, 3):
        cloud.write(partial(join_nothing, number=number))
    cloud.write(lambda tx: providers.create(tx, CHILD, "child", host_uuid(2), now=NOW))
    cloud.write(lambda tx: join(tx, CHILD, RACK))
    cloud.boot(cloud.request())
    steps = [PendingCommand(Write(change)), PendingCommand(Boot(cloud.request()))]
    answers = carry_out(FailingCommits(cloud.store), cloud.executor, steps)
    assert all(isinstance(each, Busy) for each in answers)
    cloud.reread()
    cloud.judge()
    assert faults([boot(cloud, forced_host="h3", is_admin=True)]) != [None]


def join_only(tx: Tx, number: int, aggregate: str) -> None:
    """A host is in one aggregate alone."""
    join(tx, host_uuid(number), aggregate)


def join_nothing(tx: Tx, number: int) -> None:
    """A host leaves its aggregates."""
    join(tx, host_uuid(number))


def test_the_pool_with_most_free_capacity_is_used(cloud: Cloud) -> None:
    cloud.write(lambda tx: add_pool(tx, 1, {"DISK_GB": Inventory(130)}))
    boot(cloud, 3)
    assert (pool_used(cloud, 0), pool_used(cloud, 1)) == (0, 30)
    boot(cloud, 6)
    assert (pool_used(cloud, 0), pool_used(cloud, 1)) == (30, 60)


def test_pools_with_equal_free_capacity_are_equally_likely(tmp_path: Path) -> None:
    cloud = cloud_in(tmp_path, diskless(0), scheduling=Scheduling())
    cloud.write(lambda tx: join(tx, host_uuid(0), RACK))
    cloud.write(lambda tx: [add_pool(tx, number) for number in range(2)])
    taken = set()
    for _ in range(20):
        uuids = boot(cloud).server_ids
        taken |= of(cloud, uuids[0]).keys() - {host_uuid(0)}
        cloud.write(partial(finish_deletes, uuids=uuids, now=NOW))
    assert taken == {pool_uuid(0), pool_uuid(1)}
    cloud.judge()
    cloud.close()


def test_a_host_with_disks_of_its_own_uses_them(cloud: Cloud) -> None:
    cloud.report(diskless(1, DISK_GB=20))
    first = boot(cloud, forced_host="h1", is_admin=True)
    assert of(cloud, first.server_ids[0])[host_uuid(1)]["DISK_GB"] == 10
    second = boot(cloud, forced_host="h1", is_admin=True)
    assert faults([boot(cloud, forced_host="h1", is_admin=True)]) != [None]
    # The host's own disks are removed except for the used amount, so the next server needs the
    # pool.
    cloud.report(diskless(1))
    third = boot(cloud, forced_host="h1", is_admin=True)
    assert of(cloud, third.server_ids[0])[pool_uuid()] == {"DISK_GB": 10}
    old = (*first.server_ids, *second.server_ids)
    cloud.write(lambda tx: finish_deletes(tx, old, NOW))


def test_custom_classes_are_borrowed_too(cloud: Cloud) -> None:
    gold = {"CUSTOM_GOLD": Inventory(3), "DISK_GB": Inventory(100)}
    cloud.write(lambda tx: registration.add_classes(tx, ["CUSTOM_GOLD"], NOW))
    cloud.write(lambda tx: resize(tx, pool_uuid(), **gold))
    cloud.add_flavor("gold", extra_specs={"resources:CUSTOM_GOLD": "2"})
    booted = boot(cloud, flavor_id="gold")
    assert of(cloud, booted.server_ids[0])[pool_uuid()] == {"CUSTOM_GOLD": 2, "DISK_GB": 10}
    assert faults([boot(cloud, flavor_id="gold")]) != [None]


def test_a_server_always_holds_something_of_its_host(cloud: Cloud) -> None:
    """A server that held only pools would look like one without a host."""
    nothing = {"resources:VCPU": "0", "resources:MEMORY_MB": "0"}
    cloud.add_flavor("ghost", extra_specs=nothing)
    assert faults([boot(cloud, flavor_id="ghost")]) != [None]


def test_a_pool_counts_once_in_the_sums(cloud: Cloud) -> None:
    boot(cloud, 3)
    _, whole = cloud.read(host_inventories.of_all)
    assert (whole.disk_gb.total, whole.disk_gb.used) == (100, 30)
    (line,) = cloud.read(lambda tx: host_inventories.of_hosts(tx, [hosts.by_name(tx, "h7")]))
    assert (line.disk_gb.total, line.disk_gb.used) == (100, 30)
    cloud.report(reported("own", disk_gb=50))
    _, whole = cloud.read(host_inventories.of_all)
    assert whole.disk_gb.total == 150


def test_a_pool_in_two_aggregates_of_a_host_counts_once(cloud: Cloud) -> None:
    cloud.write(lambda tx: join(tx, pool_uuid(), RACK, ROW))
    cloud.write(lambda tx: join(tx, host_uuid(0), RACK, ROW))
    _, whole = cloud.read(host_inventories.of_all)
    (line,) = cloud.read(lambda tx: host_inventories.of_hosts(tx, [hosts.by_name(tx, "h0")]))
    assert (whole.disk_gb.total, line.disk_gb.total) == (100, 100)


def test_a_pool_cannot_become_a_host(cloud: Cloud) -> None:
    for made in (HostReport("pool-0", {}), HostReport("h9x", {}, provider_uuid=pool_id())):
        with pytest.raises(Conflict):
            cloud.report(made)
    assert cloud.table.host_count == 10


def pool_id() -> ProviderUuid:
    """The pool, narrowed for the type checker."""
    return ProviderUuid(pool_uuid())


def test_a_provider_whose_host_is_gone_holds_no_servers(cloud: Cloud) -> None:
    child = "45000000-0000-4000-8000-000000000000"
    cloud.write(lambda tx: providers.create(tx, child, "child", host_uuid(2), now=NOW))
    cloud.write(lambda tx: hosts.remove_service(tx, hosts.by_name(tx, "h2"), NOW))
    assert not cloud.read(lambda tx: providers.get(tx, host_uuid(2))).can_host
    cloud.report(diskless(2))
    assert cloud.read(lambda tx: providers.get(tx, host_uuid(2))).can_host


def test_the_table_of_hosts_has_no_pool_even_if_the_store_calls_it_a_host(cloud: Cloud) -> None:
    def set_hosting(tx: Tx, *, can_host: bool) -> None:
        provider = providers.get(tx, host_uuid(5))
        registration.set_hosting(tx, [provider.id], can_host=can_host)
        providers.rename(tx, provider.uuid, f"x{can_host}", NOW)

    cloud.write(lambda tx: set_hosting(tx, can_host=False))
    cloud.boot(cloud.request())
    assert "h5" not in cloud.table.index_by_name
    rules = [each.rule for each in cloud.read(lambda tx: list(compute_audit.findings(tx)))]
    assert rules == ["the provider of each host can hold servers. A pool, for example, cannot"]
    cloud.write(lambda tx: set_hosting(tx, can_host=True))


def test_a_pool_in_use_cannot_be_removed(cloud: Cloud) -> None:
    boot(cloud)
    with pytest.raises(InUse):
        cloud.write(lambda tx: providers.delete(tx, pool_uuid(), NOW))
    with pytest.raises(InUse):
        cloud.write(lambda tx: inventories.remove_all(tx, pool_uuid(), NOW))


def test_the_audit_finds_allocations_on_another_host(cloud: Cloud) -> None:
    booted = boot(cloud, forced_host="h0", is_admin=True)
    uuid = booted.server_ids[0]
    other = cloud.read(lambda tx: providers.get(tx, host_uuid(1)).id)
    server = cloud.read(lambda tx: servers.by_uuid(tx, uuid))
    move = "UPDATE servers SET provider_id = ? WHERE uuid = ?"
    cloud.write(lambda tx: tx.exec_driver_sql(move, (other, uuid)))
    rules = {each.rule for each in cloud.read(lambda tx: list(compute_audit.findings(tx)))}
    assert "a server has allocations on no host but its own" in rules
    cloud.write(lambda tx: tx.exec_driver_sql(move, (server.provider_id, uuid)))
