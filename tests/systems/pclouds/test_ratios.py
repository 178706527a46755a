"""Ratios of the hosts of pclouds, whatever their agents report meanwhile."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import Conflict
from innkeeper.domain.hosts import HostReport, InventoryReport
from innkeeper.domain.moves import Initiator
from innkeeper.domain.pclouds import Pcloud
from innkeeper.domain.slices import Dedicating
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts as compute_hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import audit, host_flavors, hosts, pclouds
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest
from innkeeper.systems.placement import inventories, providers, ratios
from innkeeper.systems.placement.ratios import Ratio
from tests.support.clouds import NOW, Cloud, cloud_in, faults, reported
from tests.support.statements import Counter

CONTEXT = PcloudContext(Dedicating(), 60.0, Initiator("req-1", "project", "user"), NOW)
UUID = "b0000000-0000-4000-8000-000000000001"


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    """A host in the pool of a host flavor."""
    made = cloud_in(tmp_path, reported("a", **saying()))

    def pool(tx: Tx) -> None:
        closed = ServiceChange(is_disabled=True)
        compute_hosts.change_service(tx, compute_hosts.by_name(tx, "a"), closed, NOW)
        flavor = host_flavors.create(tx, made.ids.uuid(), "large", "", 1, NOW)
        host_flavors.add_host(tx, flavor, "a", NOW)

    made.write(pool)
    return made


def saying(
    ratio: float | None = None, total: int = 8, max_unit: int | None = None
) -> dict[str, Any]:
    """An agent's report of its processors."""
    told = InventoryReport(total, max_unit=max_unit, allocation_ratio=ratio)
    return {"inventories": {"VCPU": told, "MEMORY_MB": InventoryReport(8192)}}


def take(cloud: Cloud, **facts: float) -> Pcloud:
    """Create a pcloud with the host in it."""

    def write(tx: Tx) -> Pcloud:
        made = pclouds.create(tx, UUID, "project", {"name": "p", **facts}, CONTEXT)
        hosts.allocate(tx, made, HostRequest("one", "large"), CONTEXT)
        return made

    made: Pcloud = cloud.write(write)
    return made


def give_back(cloud: Cloud, pcloud: Pcloud) -> None:
    cloud.write(lambda tx: hosts.release(tx, pcloud, hosts.get(tx, pcloud, "one"), CONTEXT))


def processors(cloud: Cloud) -> Inventory:
    uuid = cloud.host("a").provider_uuid
    assert not cloud.read(lambda tx: list(audit.findings(tx)))
    found: Inventory = cloud.read(lambda tx: inventories.get(tx, uuid, "VCPU").lines[0].inventory)
    return found


def ratio_and_most(cloud: Cloud) -> tuple[float, int]:
    found = processors(cloud)
    return found.allocation_ratio, found.max_unit


def test_a_host_has_its_pclouds_ratio_and_then_its_own(cloud: Cloud) -> None:
    before = processors(cloud)
    made = take(cloud, cpu_ratio=3.0)
    assert ratio_and_most(cloud) == (3.0, 8)
    give_back(cloud, made)
    assert processors(cloud) == before


def test_ratios_reported_meanwhile_apply_after_the_release(cloud: Cloud) -> None:
    made = take(cloud, cpu_ratio=3.0)
    cloud.report(reported("a", **saying(ratio=16.0)))
    assert ratio_and_most(cloud) == (3.0, 8)
    give_back(cloud, made)
    assert ratio_and_most(cloud) == (16.0, 8)


def test_max_unit_never_exceeds_the_total(cloud: Cloud) -> None:
    cloud.report(reported("a", **saying(max_unit=100)))
    made = take(cloud, cpu_ratio=3.0)
    assert ratio_and_most(cloud) == (3.0, 8)
    cloud.report(reported("a", **saying(max_unit=100)))
    assert ratio_and_most(cloud) == (3.0, 8)
    give_back(cloud, made)
    assert processors(cloud).max_unit == 100


@pytest.mark.parametrize("ratio", [None, 1.0, 4.0, 16.0])
def test_no_server_gets_more_cores_than_the_host_has(cloud: Cloud, ratio: float | None) -> None:
    made = take(cloud, **({} if ratio is None else {"cpu_ratio": ratio}))
    cloud.write(
        lambda tx: hosts.set_state(tx, made, hosts.get(tx, made, "one"), CONTEXT, is_enabled=True)
    )
    asked: dict[str, Any] = {"hints": {"pcloud": UUID}}
    for cores in (8, 9):
        cloud.add_flavor(f"cores-{cores}", vcpus=cores)
    told = faults(cloud.boot(*(cloud.request(flavor_id=f"cores-{n}", **asked) for n in (9, 8))))
    assert told[0] is not None
    assert "CapacityFilter" in told[0]
    assert told[1] is None


def test_a_host_that_grows_meanwhile_offers_all_of_it(cloud: Cloud) -> None:
    made = take(cloud, cpu_ratio=3.0)
    cloud.report(reported("a", **saying(total=16)))
    assert ratio_and_most(cloud) == (3.0, 16)
    give_back(cloud, made)
    assert processors(cloud).max_unit == 16


def test_a_ratio_can_be_set_and_removed_while_a_host_is_in(cloud: Cloud) -> None:
    before = processors(cloud)
    made = take(cloud)
    assert processors(cloud) == before

    def change(cpu_ratio: float | None) -> None:
        facts = {"cpu_ratio": cpu_ratio}
        cloud.write(lambda tx: pclouds.update(tx, pclouds.get(tx, UUID), facts, CONTEXT))

    change(2.0)
    change(5.0)
    assert ratio_and_most(cloud) == (5.0, 8)
    change(None)
    assert processors(cloud) == before
    give_back(cloud, made)
    assert processors(cloud) == before


def test_a_class_that_the_host_lacks_has_no_ratio(cloud: Cloud) -> None:
    made = take(cloud, ram_ratio=1.5)
    cloud.report(HostReport("a", {"VCPU": InventoryReport(8)}))
    give_back(cloud, made)
    cloud.report(reported("a", **saying()))
    assert not cloud.read(lambda tx: list(audit.findings(tx)))


def test_a_class_reported_later_has_the_pclouds_ratio(cloud: Cloud) -> None:
    cloud.report(HostReport("a", {"MEMORY_MB": InventoryReport(8192)}))
    made = take(cloud, cpu_ratio=3.0)
    cloud.report(reported("a", **saying()))
    assert ratio_and_most(cloud) == (3.0, 8)
    give_back(cloud, made)
    assert processors(cloud).allocation_ratio == 1.0


# -- guarded at Placement ----------------------------------------------------------------------


def edit(cloud: Cloud, uuid: str, name: str, inventory: Inventory) -> None:
    """Replace a provider's inventory of a class, as a client of the Placement API does."""

    def write(tx: Tx) -> None:
        seen = inventories.listing(tx, uuid).generation
        inventories.change(tx, uuid, name, seen, inventory, NOW)

    cloud.write(write)


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (Inventory(8, max_unit=8, allocation_ratio=1.0), "allocation_ratio must stay 3.3"),
        (Inventory(8, max_unit=8, allocation_ratio=3.30001), "must stay 3.3"),
        (Inventory(8, max_unit=9, allocation_ratio=3.3), "max_unit must be at most 8"),
        (Inventory(4, max_unit=8, allocation_ratio=3.3), "max_unit must be at most 4"),
        (Inventory(0, max_unit=2, allocation_ratio=3.3), "max_unit must be at most 1"),
    ],
)
def test_an_edit_that_breaks_the_pclouds_ratio_is_refused(
    cloud: Cloud, after: Inventory, reason: str
) -> None:
    take(cloud, cpu_ratio=3.3)
    before, uuid = processors(cloud), cloud.host("a").provider_uuid
    with pytest.raises(Conflict, match=reason):
        edit(cloud, uuid, "VCPU", after)
    assert processors(cloud) == before
    for removing in (
        lambda tx: inventories.remove(tx, uuid, "VCPU", NOW),
        lambda tx: inventories.remove_all(tx, uuid, NOW),
    ):
        with pytest.raises(Conflict, match="cannot be removed"):
            cloud.write(removing)
    assert processors(cloud) == before


@pytest.mark.parametrize(
    "after",
    [
        Inventory(8, max_unit=8, allocation_ratio=3.3),
        Inventory(8, 2, 2, 4, 2, allocation_ratio=3.3),
        Inventory(4, max_unit=4, allocation_ratio=3.3),
        Inventory(0, max_unit=1, allocation_ratio=3.3),
    ],
)
def test_an_edit_that_keeps_the_pclouds_ratio_is_carried_out(
    cloud: Cloud, after: Inventory
) -> None:
    made = take(cloud, cpu_ratio=3.3)
    edit(cloud, cloud.host("a").provider_uuid, "VCPU", after)
    assert processors(cloud) == after
    give_back(cloud, made)
    assert processors(cloud).allocation_ratio == 1.0


def test_a_broken_ratio_can_be_corrected_at_placement(cloud: Cloud) -> None:
    """Older processes allowed the edit that broke the ratio."""
    take(cloud, cpu_ratio=3.0)
    uuid = cloud.host("a").provider_uuid
    cloud.write(lambda tx: ratios.write(tx, uuid, {"VCPU": Ratio(7.0, 9)}, NOW))
    assert cloud.read(lambda tx: list(audit.findings(tx)))
    with pytest.raises(Conflict, match="allocation_ratio must stay"):
        edit(cloud, uuid, "VCPU", Inventory(8, max_unit=8, allocation_ratio=7.0))
    edit(cloud, uuid, "VCPU", Inventory(8, max_unit=8, allocation_ratio=3.0))
    assert ratio_and_most(cloud) == (3.0, 8)


def test_ratios_of_pclouds_are_looked_up_for_hosts_alone(cloud: Cloud) -> None:
    other = cloud.ids.uuid()

    def make(tx: Tx) -> None:
        providers.create(tx, other, "no host", None, now=NOW)
        inventories.add(tx, other, "VCPU", Inventory(8), NOW)

    cloud.write(make)
    counter, host = Counter(cloud), cloud.host("a").provider_uuid
    after, counts = Inventory(8, max_unit=8), []
    for uuid in (host, other):
        seen = cloud.read(partial(inventories.listing, uuid=uuid)).generation

        def write(tx: Tx, uuid: str = uuid, seen: int = seen) -> None:
            change = partial(inventories.change, tx, uuid, "VCPU", seen, after, NOW)
            counts.append(counter.of(change))

        cloud.write(write)
    assert counts[0] == counts[1] + 1
