"""The texts of faults when no host was found."""

from __future__ import annotations

from typing import Any

import pytest

from innkeeper.domain.placing import BuildPlan
from innkeeper.scheduling import reasons
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import asking, host, pipeline_of, plan, table_of

ALL_ALIKE = pipeline_of()


def told(table: HostTable, wanted: int = 1, **more: Any) -> str:
    made: BuildPlan = plan(ALL_ALIKE, table, asking(count=wanted, **more))
    return reasons.sentence(made, wanted, has_dedicated=False)


def test_the_fault_of_an_empty_cloud() -> None:
    assert told(HostTable()) == "No valid host was found. There are no hosts yet."


def test_every_filter_that_removed_hosts_is_named_in_order_with_what_was_missing() -> None:
    table = table_of(
        host("closed", is_open=False),
        host("elsewhere", zone="south"),
        host("small a", vcpus=1),
        host("small b", vcpus=2),
    )
    assert told(table, vcpus=4, availability_zone="nova") == (
        "No valid host was found. Of 4 hosts, 0 passed all filters: "
        "ComputeFilter removed 1 (the host is disabled or down; "
        "1 disabled or forced down, 0 down (no heartbeat for 60 s)), "
        "AvailabilityZoneFilter removed 1 (the host is in another availability zone; "
        "zone 'nova' requested; zones with hosts: nova, south), "
        "CapacityFilter removed 2 (the host has too little free capacity; "
        "VCPU: 4 requested, at most 16 left on one host; "
        "MEMORY_MB: 1024 requested, at most 32768 left on one host; "
        "DISK_GB: 10 requested, at most 500 left on one host)."
    )


def test_too_few_places_say_how_many_there_are() -> None:
    table = table_of(host("a", vcpus=2), host("b", vcpus=1))
    assert told(table, wanted=5) == (
        "No valid host was found. Of 2 hosts, 2 passed all filters, with room for 3 of 5 servers."
    )


@pytest.mark.parametrize("wanted", [1, 3])
def test_clients_recognise_the_beginning(wanted: int) -> None:
    assert told(table_of(host("a", vcpus=0)), wanted).startswith("No valid host was found. ")


def test_filters_behind_the_one_that_removed_the_last_host_are_silent() -> None:
    said = told(table_of(host("a", is_open=False, vcpus=0)))
    assert "ComputeFilter removed 1" in said
    assert "CapacityFilter" not in said
