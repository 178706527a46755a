"""All implementations agree on which pools serve a host, and which classes a host borrows."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import Invalid
from innkeeper.domain.hosts import HostReport, InventoryReport
from innkeeper.domain.ids import ClassId, ProviderId, ProviderUuid
from innkeeper.domain.placement import SHARES
from innkeeper.snapshot import loader
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries.placement import names
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts as compute_hosts
from innkeeper.systems.compute.hosts import inventories
from innkeeper.systems.placement import classes, pools, providers, traits
from tests.support.clouds import NOW, Cloud, cloud_in
from tests.support.pools import RACK, ROW, add_pool, join, pool_uuid

HOSTS, POOLS, OTHERS = 4, 3, 2
DISK, OTHER = "DISK_GB", "CUSTOM_OTHER"
AISLE = "60000000-0000-4000-8000-00000000000c"


class Member(NamedTuple):
    """A provider of a tree: its aggregates, its parent, and whether it has the sharing trait."""

    aggregates: frozenset[str]
    parent: int | None
    shares: bool


class World(NamedTuple):
    """The providers: hosts first, then neither hosts nor pools; the hosts' disks; and the pools."""

    members: list[Member]
    disks: list[Inventory | None]
    pools: list[tuple[frozenset[str], bool]]


AGGREGATES = st.sets(st.sampled_from([RACK, ROW, AISLE]), max_size=2).map(frozenset)
MEMBERS = st.builds(
    Member,
    aggregates=AGGREGATES,
    parent=st.none() | st.integers(0, HOSTS + OTHERS - 1),
    shares=st.booleans(),
)
DISKS = st.none() | st.builds(
    Inventory,
    total=st.integers(1, 4),
    reserved=st.integers(0, 4),
    allocation_ratio=st.sampled_from([0.2, 0.25, 0.3, 0.5, 1.0, 1.5, 16.1]),
).filter(lambda each: each.reserved <= each.total)
WORLDS = st.builds(
    World,
    members=st.lists(MEMBERS, min_size=HOSTS + OTHERS, max_size=HOSTS + OTHERS),
    disks=st.lists(DISKS, min_size=HOSTS, max_size=HOSTS),
    pools=st.lists(st.tuples(AGGREGATES, st.booleans()), min_size=POOLS, max_size=POOLS),
)


def uuid_of(number: int) -> str:
    """The uuid of a member's provider."""
    return f"40000000-0000-4000-8000-{number:012}"


def report_of(number: int, disk: Inventory | None) -> HostReport:
    """A host as its agent reports it."""
    has = {"VCPU": InventoryReport(4)}
    if disk is not None:
        has[DISK] = InventoryReport(
            disk.total, reserved=disk.reserved, allocation_ratio=disk.allocation_ratio
        )
    return HostReport(f"h{number}", has, provider_uuid=ProviderUuid(uuid_of(number)))


def make(cloud: Cloud, tx: Tx, world: World) -> None:
    """Write the world, except parents that would make a loop."""
    classes.create(tx, OTHER, NOW)
    cloud.report_in(tx, *(report_of(number, disk) for number, disk in enumerate(world.disks)))
    for number in range(HOSTS, HOSTS + OTHERS):
        providers.create(tx, uuid_of(number), f"other-{number}", None, now=NOW)
    for number, each in enumerate(world.members):
        if each.parent is not None:
            with suppress(Invalid):
                providers.hang(tx, uuid_of(number), uuid_of(each.parent), NOW)
        if each.shares and number < HOSTS:
            traits.replace(tx, uuid_of(number), None, {SHARES}, NOW)
        join(tx, uuid_of(number), *each.aggregates)
    for number, (aggregates, has_disks) in enumerate(world.pools):
        has = {DISK: Inventory(40)} if has_disks else {OTHER: Inventory(40)}
        add_pool(tx, number, has, aggregates)


def by_hand(tx: Tx, world: World) -> dict[int, set[int]]:
    """The pools that serve each host, from the generated world and the roots of providers."""
    roots = [providers.get(tx, uuid_of(each)).root_uuid for each in range(len(world.members))]
    near: dict[str, set[str]] = {}
    for root, each in zip(roots, world.members, strict=True):
        near.setdefault(root, set()).update(each.aggregates)
    return {
        host: {
            number
            for number, (aggregates, _) in enumerate(world.pools)
            if aggregates & near[roots[host]]
        }
        for host in range(HOSTS)
    }


def lacks(disk: Inventory | None) -> bool:
    """Whether a host has no disk capacity of its own."""
    return disk is None or disk.capacity_units < 1


def served_in(table: HostTable, host: ProviderId) -> set[ProviderId]:
    """The pools that serve a host, as the table knows it."""
    return set(table.pools.serving(int(table.membership_codes[table.index_of[host]])))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(WORLDS)
@example(
    # A host with less than one unit, a host below it, and a rack above both; a host that reserves
    # all that it has; a host without disks.
    World(
        [
            Member(frozenset(), HOSTS, shares=True),
            Member(frozenset({ROW}), 0, shares=False),
            Member(frozenset({AISLE}), None, shares=False),
            Member(frozenset(), None, shares=False),
            Member(frozenset({RACK}), None, shares=False),
            Member(frozenset(), None, shares=False),
        ],
        [Inventory(3, allocation_ratio=0.3), Inventory(1), Inventory(4, reserved=4), None],
        [(frozenset({RACK}), True), (frozenset({ROW}), True), (frozenset({AISLE}), True)],
    )
)
def test_all_three_places_say_the_same_of_pools(world: World) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cloud = cloud_in(Path(folder))
        try:
            cloud.write(lambda tx: make(cloud, tx, world))
            cloud.reread()
            with cloud.store.read() as tx:
                for table in (cloud.table, loader.load_all(tx)):
                    agree(tx, table, world)
        finally:
            cloud.close()


def agree(tx: Tx, table: HostTable, world: World) -> None:
    """Check that the table, the systems, the sums over all hosts and the plain rules agree."""
    hosts = [providers.get(tx, uuid_of(each)).id for each in range(HOSTS)]
    ids = [providers.get(tx, pool_uuid(each)).id for each in range(POOLS)]
    served = {
        hosts[host]: {ids[pool] for pool in mine} for host, mine in by_hand(tx, world).items()
    }
    lacking = {host for host, disk in zip(hosts, world.disks, strict=True) if lacks(disk)}

    assert {host: served_in(table, host) for host in hosts} == served
    by_systems = pools.serving(tx, hosts)
    assert {host: set(by_systems.get(host, ())) for host in hosts} == served

    borrows = table.borrows(DISK, slice(None)) if DISK in table.free else [True] * HOSTS
    assert {host for host in hosts if borrows[table.index_of[host]]} == lacking

    class_id = ClassId(names.class_ids(tx)[DISK])
    able = {pool for pool, (_, has_disks) in zip(ids, world.pools, strict=True) if has_disks}
    depended_on = {pool for host in lacking for pool in served[host] if pool in able}
    assert pools.depended_on(tx, class_id) == depended_on

    rows = [compute_hosts.by_name(tx, f"h{number}") for number in range(HOSTS)]
    for host, line in zip(hosts, inventories.of_hosts(tx, rows), strict=True):
        assert line.disk_gb.is_own == (host not in lacking)
        if host in lacking:
            own = world.disks[hosts.index(host)]
            lent = 40 * len(served[host] & able)
            assert line.disk_gb.total == lent + (0 if own is None else own.total)
