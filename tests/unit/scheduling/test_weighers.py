"""Each weigher by itself, and all of them brought to one scale."""

from __future__ import annotations

import numpy as np
import pytest

from innkeeper.domain.ids import HostIndex, ProviderId
from innkeeper.scheduling.pipeline import Scale
from innkeeper.scheduling.weighers import free_disk, free_memory, free_vcpus
from innkeeper.scheduling.weighers.catalogue import WEIGHERS
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import asking, host, pipeline_of, table_of

WHOLE = slice(None)
HOSTS = (
    host("a", vcpus=4, memory_mb=1000, disk_gb=70),
    host("b", vcpus=8, memory_mb=2000, disk_gb=-5),
    host("c", vcpus=0, memory_mb=3000, disk_gb=10),
)


def test_weighers_give_what_is_free_of_their_class() -> None:
    table = table_of(*HOSTS)
    assert list(free_vcpus.column(table, asking(), WHOLE)) == [4, 8, 0]
    assert list(free_memory.column(table, asking(), WHOLE)) == [1000, 2000, 3000]
    assert list(free_disk.column(table, asking(), WHOLE)) == [70, -5, 10]


@pytest.mark.parametrize("name", WEIGHERS)
def test_every_weigher_answers_for_one_row_as_for_all(name: str) -> None:
    table, weigher = table_of(*HOSTS), WEIGHERS[name]
    whole = weigher.column(table, asking(), WHOLE)
    for index in range(table.host_count):
        (alone,) = weigher.column(table, asking(), slice(index, index + 1))
        assert alone == whole[index]
    assert name == weigher.NAME


@pytest.mark.parametrize("name", WEIGHERS)
def test_every_weigher_is_indifferent_where_nobody_has_its_class(name: str) -> None:
    table = HostTable()
    table.ensure_rows([(ProviderId(1), "bare")])
    assert list(WEIGHERS[name].column(table, asking(), WHOLE)) == [0.0]


def scale_of(table: HostTable, **multipliers: float) -> Scale:
    everybody = np.arange(table.host_count)
    return Scale(pipeline_of(**multipliers), table, asking(), everybody)


def test_a_scale_goes_from_nought_to_the_multiplier() -> None:
    weights = scale_of(table_of(*HOSTS), FreeMemoryWeigher=3.0).weights
    assert list(weights) == pytest.approx([0.0, 1.5, 3.0])


def test_a_negative_multiplier_turns_the_order_round() -> None:
    weights = scale_of(table_of(*HOSTS), FreeMemoryWeigher=-1.0).weights
    assert list(weights) == pytest.approx([0.0, -0.5, -1.0])


def test_weights_of_several_weighers_are_added() -> None:
    table = table_of(*HOSTS)
    scale = scale_of(table, FreeMemoryWeigher=1.0, FreeVcpusWeigher=2.0)
    assert list(scale.weights) == pytest.approx([0.0 + 1.0, 0.5 + 2.0, 1.0 + 0.0])
    assert scale.parts(1) == pytest.approx({"FreeMemoryWeigher": 0.5, "FreeVcpusWeigher": 2.0})


def test_a_multiplier_of_nought_silences_a_weigher() -> None:
    scale = scale_of(table_of(*HOSTS), FreeMemoryWeigher=0.0, FreeVcpusWeigher=1.0)
    assert scale.parts(0).keys() == {"FreeVcpusWeigher"}


def test_hosts_that_are_all_alike_weigh_the_same() -> None:
    table = table_of(host("a"), host("b"), host("c"))
    assert list(scale_of(table, FreeMemoryWeigher=1.0).weights) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("multiplier", [1.0, -1.0, 0.3])
def test_weighing_again_gives_bit_by_bit_what_weighing_first_gave(multiplier: float) -> None:
    """Otherwise two hosts that are equal would not count as equal after a pick."""
    table = table_of(
        host("a", memory_mb=7, vcpus=3, disk_gb=11),
        host("b", memory_mb=13, vcpus=3, disk_gb=5),
        host("c", memory_mb=29, vcpus=3, disk_gb=17),
    )
    scale = scale_of(
        table, FreeMemoryWeigher=multiplier, FreeVcpusWeigher=0.7, FreeDiskWeigher=0.1
    )
    assert [scale.again(index) for index in range(3)] == list(scale.weights)


def test_a_scale_keeps_its_ends_while_amounts_are_taken() -> None:
    table = table_of(*HOSTS)
    scale = scale_of(table, FreeMemoryWeigher=1.0)
    table.take(HostIndex(2), {"MEMORY_MB": 2500})
    assert scale.again(2) == pytest.approx(-0.25)
    assert scale.again(0) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("multiplier", "is_lighter"),
    [
        pytest.param(1.0, True, id="a picked host falls behind where servers are spread"),
        pytest.param(-1.0, False, id="a picked host goes ahead where servers are packed"),
    ],
)
def test_hosts_that_were_all_alike_differ_once_one_was_picked(
    multiplier: float, is_lighter: bool
) -> None:
    table = table_of(host("a"), host("b"))
    scale = scale_of(table, FreeMemoryWeigher=multiplier)
    table.take(HostIndex(0), {"MEMORY_MB": 1024})
    assert (scale.again(0) < scale.again(1)) is is_lighter
    assert scale.again(0) != scale.again(1)
