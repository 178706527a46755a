"""Capacity, usage and free amounts of providers, as owners of pclouds see them."""

from __future__ import annotations

from pathlib import Path

from innkeeper.domain.hosts import InventoryReport
from innkeeper.domain.ids import ProviderId
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.placement import free_capacity
from innkeeper.systems.placement.free_capacity import Figures
from tests.support.clouds import reported
from tests.support.moves import Movers

HALF_MORE = InventoryReport(total=8, reserved=2, allocation_ratio=1.5)
NOTHING = ProviderId(2**40)


def test_reserved_amounts_do_not_count_and_overcommit_is_negative(tmp_path: Path) -> None:
    movers = Movers(tmp_path, reported("a1", inventories={"VCPU": HALF_MORE}))
    movers.boot("a1")

    def figures(*names: str) -> dict[str, Figures]:
        def look(tx: Tx) -> dict[str, Figures]:
            mine = hosts.by_name(tx, "a1").provider_id
            found = free_capacity.of_classes(tx, [mine, NOTHING], names)
            assert set(found) == {mine}
            return found[mine]

        seen: dict[str, Figures] = movers.cloud.read(look)
        return seen

    assert figures("VCPU", "DISK_GB", "CUSTOM_NOBODY_HAS")["VCPU"] == Figures(6, 9, 1)
    assert set(figures("VCPU", "CUSTOM_NOBODY_HAS")) == {"VCPU"}
    movers.report(reported("a1", inventories={"VCPU": InventoryReport(8, 7, allocation_ratio=0.5)}))
    assert figures("VCPU")["VCPU"] == Figures(1, 0, 1)
    assert figures("VCPU")["VCPU"].left == -1
    movers.close()
