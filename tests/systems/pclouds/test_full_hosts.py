"""When the hosts of a pcloud with a size policy are full, in any class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.hosts import InventoryReport
from innkeeper.domain.ids import ConsumerUuid
from innkeeper.domain.pclouds import SizePolicy
from innkeeper.domain.placement import ConsumerClaim
from innkeeper.store.queries.placement import names
from innkeeper.store.transactions import Tx
from innkeeper.systems.pclouds import hosts
from innkeeper.systems.placement import claims
from tests.support.pools import RACK, add_pool, join
from tests.support.sized_pclouds import Kept
from tests.support.statements import Counter

HOSTS = 4
GOLD = "CUSTOM_GOLD"
Make = Callable[..., Kept]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Create a pcloud that grows from a pool of four hosts."""
    made: list[Kept] = []

    def begin(*, vcpus_min: int = 1, idle_s: int | None = None, **facts: Any) -> Kept:
        kept = Kept(tmp_path, HOSTS, **{"vcpus": 16, "memory_mb": 4096, **facts})
        kept.wants(1, HOSTS, vcpus_min=vcpus_min, idle_s=idle_s)
        kept.turn()
        made.append(kept)
        return kept

    yield begin
    for kept in made:
        kept.movers.judge()
        kept.movers.close()


def first(kept: Kept) -> str:
    """The name of the pcloud's one host."""
    (name,) = kept.names()
    return name


def test_a_host_without_memory_left_is_full(make: Make) -> None:
    """The host still has twelve processors left."""
    kept = make()
    for _ in range(3):
        kept.boot()
        assert kept.turn() == 0
    kept.boot()
    assert kept.turns(3) == [1, 0, 0]


def test_a_host_without_disk_left_is_full(make: Make) -> None:
    kept = make(disk_gb=19)
    kept.boot()
    assert kept.turns(3) == [1, 0, 0]


def test_a_host_without_a_custom_class_left_is_full(make: Make) -> None:
    kept = make(inventories={GOLD: InventoryReport(3)})
    kept.movers.cloud.add_flavor("gold", extra_specs={f"resources:{GOLD}": "2"})
    kept.boot()
    assert kept.turn() == 0
    kept.boot(flavor_id="gold")
    assert kept.turns(3) == [1, 0, 0]


def test_classes_without_servers_do_not_count(make: Make) -> None:
    kept = make(inventories={GOLD: InventoryReport(3, reserved=3)})
    kept.boot()
    assert kept.turn() == 0


def test_a_host_is_full_when_the_largest_server_does_not_fit_again(make: Make) -> None:
    """The largest memory and the most processors may belong to two different servers."""
    kept = make(vcpus=8, memory_mb=8192)
    kept.movers.cloud.add_flavor("wide", vcpus=4)
    kept.movers.cloud.add_flavor("deep", memory_mb=4096)
    kept.boot(flavor_id="deep")
    assert kept.turn() == 0
    wide = kept.boot(flavor_id="wide")
    # Three processors and 3 GB are left.
    assert kept.turns(3) == [1, 0, 0]
    kept.delete(wide)


def test_a_deleted_server_no_longer_counts_as_the_largest(make: Make) -> None:
    kept = make(idle_s=0)
    kept.movers.cloud.add_flavor("deep", memory_mb=3072)
    name, deep = first(kept), kept.boot(flavor_id="deep")
    assert kept.turn() == 1
    kept.boot(name)
    assert kept.turn() == 0
    kept.delete(deep)
    assert kept.turn() == 1
    assert kept.names() == [name]


def test_one_server_that_fills_a_host_adds_one_host(make: Make) -> None:
    """An empty host is not full, so only one host is added."""
    kept = make()
    kept.movers.cloud.add_flavor("giant", vcpus=16)
    kept.boot(flavor_id="giant")
    assert kept.turns(3) == [1, 0, 0]


def test_a_minimum_above_a_hosts_processors_adds_no_hosts(make: Make) -> None:
    kept = make(vcpus_min=17)
    assert kept.turns(2) == [0, 0]
    kept.boot()
    assert kept.turns(3) == [1, 0, 0]


def test_a_host_without_processors_of_its_own_is_not_full_for_lack_of_them(make: Make) -> None:
    kept = make(lacking="VCPU", inventories={"PCPU": InventoryReport(4)})
    kept.movers.cloud.add_flavor(
        "pinned", extra_specs={"resources:VCPU": "0", "resources:PCPU": "1"}
    )
    kept.boot(flavor_id="pinned")
    assert kept.turn() == 0


def test_amounts_of_a_pool_do_not_count(make: Make) -> None:
    kept = make(lacking="DISK_GB")
    uuids = [kept.movers.cloud.host(f"a{each}").provider_uuid for each in range(1, HOSTS + 1)]

    def share(tx: Tx) -> None:
        add_pool(tx, 0, {"DISK_GB": Inventory(15)})
        for each in uuids:
            join(tx, each, RACK)

    kept.movers.cloud.write(share)
    kept.boot()
    # The pool has half of what a further server needs, and every host would use this pool.
    assert kept.turn() == 0


def test_other_consumers_reduce_capacity_but_are_no_server_size(make: Make) -> None:
    kept = make(vcpus=8)
    kept.boot()
    hold(kept, "VCPU", 6)
    assert kept.turn() == 0
    hold(kept, "VCPU", 1)
    assert kept.turns(3) == [1, 0, 0]


def test_servers_on_a_host_that_was_replaced_count(make: Make) -> None:
    kept = make()
    kept.movers.cloud.add_flavor("deep", memory_mb=3072)
    name, deep = first(kept), kept.boot(flavor_id="deep")
    assert kept.turn() == 1
    (other,) = set(kept.names()) - {name}
    kept.operator.maintain("gold", kept.machine(name), "new fans")
    kept.operator.act(
        kept.uuid, lambda tx, pcloud, context: hosts.replace(tx, pcloud, name, context)
    )
    for each in (name, other):
        kept.boot(each)
        assert kept.turn() == 0
        kept.boot(each)
    assert kept.turns(3) == [1, 0, 0]
    kept.delete(deep)


def test_an_idle_host_stays_while_the_others_are_full(make: Make) -> None:
    kept = make(idle_s=0, disk_gb=19)
    server = kept.boot()
    assert kept.turns(4) == [1, 0, 0, 0]
    kept.delete(server)
    assert kept.turns(4) == [1, 0, 0, 0]
    assert len(kept.names()) == 1


def test_the_number_of_statements_does_not_depend_on_servers(make: Make) -> None:
    kept = make(vcpus=32, memory_mb=32768, disk_gb=1000)
    counter, counts = Counter(kept.movers.cloud), []
    for count in (1, 9):
        for _ in range(count):
            kept.boot()
        kept.operator.update(kept.uuid, size=SizePolicy(1, HOSTS, "gold"))
        counts.append(counter.of(kept.operator.keep_sizes))
    assert len(set(counts)) == 1


def hold(kept: Kept, class_name: str, amount: int) -> None:
    """Let a client of the Placement API hold some of the pcloud's one host."""
    provider = kept.hosts()[0].provider_id

    def act(tx: Tx) -> None:
        class_id = names.class_ids(tx)[class_name]
        uuid = ConsumerUuid(kept.movers.cloud.ids.uuid())
        claim = ConsumerClaim(uuid, "p", "u", {provider: {class_id: amount}}, None)
        claims.replace(tx, [claim], kept.movers.now)

    kept.movers.cloud.write(act)
