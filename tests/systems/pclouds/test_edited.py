"""Edits of host flavors and pclouds outside their API, by aggregates and by inventories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.amounts import UNIT_MAX, Inventory
from innkeeper.domain.errors import Invalid
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import audit, host_flavors, pclouds
from innkeeper.systems.pclouds.hosts import HostRequest
from innkeeper.systems.placement import inventories, ratios
from innkeeper.systems.placement.ratios import Ratio
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[PcloudOperator]:
    """A cloud with one host."""
    made = PcloudOperator(Movers(tmp_path, reported("a1", vcpus=8)))
    yield made
    made.movers.close()


def test_the_description_of_an_expensive_host_flavor_can_be_edited(
    operator: PcloudOperator,
) -> None:
    operator.define("large", UNIT_MAX)
    row = operator._row_of_flavor("large")
    operator.edit(row, {"pcloud:description": "dear"})
    found = operator.cloud.read(lambda tx: host_flavors.get(tx, "large"))
    assert (found.description, found.units) == ("dear", UNIT_MAX)
    with pytest.raises(Invalid):
        operator.edit(row, {"pcloud:units": str(UNIT_MAX + 1)})


def test_a_name_that_the_api_accepts_is_accepted_in_metadata(operator: PcloudOperator) -> None:
    uuid = operator.create("project", name="p")
    operator.edit(operator.row_of(uuid), {"pcloud:name": "ours: a/b"})
    assert operator.cloud.read(lambda tx: pclouds.get(tx, uuid)).name == "ours: a/b"
    for wrong in ("", " p", "p\n", "x" * 256):
        with pytest.raises(Invalid):
            operator.edit(operator.row_of(uuid), {"pcloud:name": wrong})


def test_a_ratio_is_written_exactly(operator: PcloudOperator) -> None:
    uuid = operator.create("project", name="p", cpu_ratio=1.23456789, ram_ratio=2.0)
    said = operator.metadata()[f"Pcloud:{uuid}"]
    assert said["cpu_allocation_ratio"] == "1.23456789"
    assert said["ram_allocation_ratio"] == "2"


def test_a_report_restores_a_ratio_that_an_older_process_let_placement_break(
    operator: PcloudOperator,
) -> None:
    """An older process did not refuse an edit that breaks a pcloud's ratio."""
    cloud = operator.cloud
    operator.define("large", 1)
    uuid = operator.create("project", name="p", cpu_ratio=2.0)
    operator.switch_service("a1", ServiceChange(is_disabled=True))
    operator.pool("large", "a1", by_aggregate=False)
    operator.allocate(uuid, HostRequest("one", "large"))
    provider = cloud.host("a1").provider_uuid

    def line() -> Inventory:
        found: Inventory = cloud.read(
            lambda tx: inventories.get(tx, provider, "VCPU").lines[0].inventory
        )
        return found

    told, now = line(), operator.movers.now
    wild = {"VCPU": Ratio(5.0, 1000)}
    cloud.write(lambda tx: ratios.write(tx, provider, wild, now))
    assert [each.invariant.kind for each in cloud.read(lambda tx: list(audit.findings(tx)))]
    operator.movers.report(reported("a1", vcpus=8))
    assert line() == told
    assert not cloud.read(lambda tx: list(audit.findings(tx)))
