"""The weight for packing: the share of the scarcest class, and what a server leaves over."""

from __future__ import annotations

import pytest

from innkeeper.scheduling.weighers import pack
from innkeeper.scheduling.weighers.catalogue import WEIGHER_SETS
from innkeeper.snapshot.columns import HostTable
from tests.support.host_facts import weights_by
from tests.support.tables import Sketch, asking, host, pipeline_of, plan, table_of

GB = 1024


def sketch(name: str, cores: int, memory_gb: int) -> Sketch:
    """A host of 64 cores and 128 GB with these amounts left."""
    used = {"VCPU": 64 - cores, "MEMORY_MB": (128 - memory_gb) * GB}
    return host(name, vcpus=cores, memory_mb=memory_gb * GB, disk_gb=0, used=used)


def weight(cores: int, memory_gb: int, vcpus: int, asked_gb: int) -> float:
    table = table_of(sketch("a", cores, memory_gb))
    return weights_by(pack, table, asking(vcpus, asked_gb * GB, 0))["a"]


@pytest.mark.parametrize(
    ("cores", "memory_gb", "vcpus", "asked_gb", "expected"),
    [
        # An empty host; the server takes half of all: 1/2 is lost, and 1/2 * 1/2 is left over.
        (64, 128, 32, 64, -0.75),
        # The server fills the host: all of the half is lost, and nothing is left over.
        (32, 64, 32, 64, -0.5),
        # There is much memory: 1/4 of the cores is lost, and 1/4 * 7/8 is left over.
        (32, 128, 16, 16, -0.46875),
        # Half of the cores are useless without memory, so only memory is lost.
        (64, 32, 16, 16, -0.21875),
    ],
)
def test_what_is_lost_and_what_is_left_over(
    cores: int, memory_gb: int, vcpus: int, asked_gb: int, expected: float
) -> None:
    assert weight(cores, memory_gb, vcpus, asked_gb) == expected


def chosen(vcpus: int, asked_gb: int, *hosts: Sketch, count: int = 1) -> list[str]:
    pipeline = pipeline_of(**WEIGHER_SETS["pack"])
    made = plan(pipeline, table_of(*hosts), asking(vcpus, asked_gb * GB, 0, count=count))
    return [entry.host for entry in made.entries]


def test_a_server_takes_what_is_plenty_from_where_it_is() -> None:
    plenty_of_memory, plenty_of_cores = sketch("memory", 16, 64), sketch("cores", 32, 32)
    assert chosen(1, 16, plenty_of_memory, plenty_of_cores) == ["memory"]
    assert chosen(8, 2, plenty_of_memory, plenty_of_cores) == ["cores"]


def test_empty_hosts_stay_empty_as_long_as_used_ones_have_room() -> None:
    hosts = (sketch("empty", 64, 128), sketch("begun", 8, 16))
    assert chosen(4, 8, *hosts, count=3) == ["begun", "begun", "empty"]


def test_only_requested_amounts_count() -> None:
    table = table_of(sketch("a", 0, 64), sketch("b", 64, 64))
    by_memory = weights_by(pack, table, asking(0, 32 * GB, 0))
    assert by_memory == {"a": -0.5, "b": -0.5}
    assert set(weights_by(pack, table, asking(0, 0, 0)).values()) == {0.0}


def test_a_host_without_any_of_a_class_borrows_it_and_loses_none() -> None:
    table: HostTable = table_of(host("a", vcpus=8, memory_mb=8 * GB, disk_gb=0))
    with_disk = weights_by(pack, table, asking(4, 4 * GB, 10))
    assert with_disk == weights_by(pack, table, asking(4, 4 * GB, 0))


def test_a_whole_host_weighs_the_multiplier() -> None:
    assert pack.scale(table_of(), asking()) == 1
