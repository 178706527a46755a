"""Each weigher alone, and all weighers on one scale."""

from __future__ import annotations

import pytest

from innkeeper.domain.ids import HostIndex, ProviderId
from innkeeper.scheduling.pipeline import parts, weigh
from innkeeper.scheduling.weighers.catalogue import WEIGHERS
from innkeeper.scheduling.weighers.free_amounts import FREE_DISK, FREE_MEMORY, FREE_VCPUS
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import asking, fill, host, pipeline_of, row_for, table_of

WHOLE = slice(None)
HOSTS = (
    host("a", vcpus=4, memory_mb=1000, disk_gb=70),
    host("b", vcpus=8, memory_mb=2000, disk_gb=-5),
    host("c", vcpus=0, memory_mb=3000, disk_gb=10),
)


def test_weighers_give_what_is_free_of_their_class() -> None:
    table = table_of(*HOSTS)
    assert list(FREE_VCPUS.column(table, asking(), WHOLE)) == [4, 8, 0]
    assert list(FREE_MEMORY.column(table, asking(), WHOLE)) == [1000, 2000, 3000]
    assert list(FREE_DISK.column(table, asking(), WHOLE)) == [70, -5, 10]


@pytest.mark.parametrize("name", WEIGHERS)
def test_every_weigher_answers_for_one_row_as_for_all(name: str) -> None:
    table, weigher = table_of(*HOSTS), WEIGHERS[name]
    whole = weigher.column(table, asking(), WHOLE)
    for index in range(table.host_count):
        (alone,) = weigher.column(table, asking(), slice(index, index + 1))
        assert alone == whole[index]
    assert name == weigher.NAME


@pytest.mark.parametrize("name", WEIGHERS)
def test_every_weigher_gives_zero_without_its_class(name: str) -> None:
    table = HostTable()
    table.ensure_rows([(ProviderId(1), "bare")])
    assert list(WEIGHERS[name].column(table, asking(), WHOLE)) == [0.0]


def weights_of(table: HostTable, **multipliers: float) -> list[float]:
    given = weigh(pipeline_of(**multipliers).weighers, table, asking(), WHOLE)
    assert given is not None
    return [float(each) for each in given]


def test_the_most_that_one_host_has_weighs_the_multiplier() -> None:
    weights = weights_of(table_of(*HOSTS), FreeMemoryWeigher=3.0)
    assert weights == pytest.approx([1.0, 2.0, 3.0])


def test_a_negative_multiplier_turns_the_order_round() -> None:
    weights = weights_of(table_of(*HOSTS), FreeMemoryWeigher=-1.0)
    assert weights == pytest.approx([-1 / 3, -2 / 3, -1.0])


def test_weights_of_several_weighers_are_added() -> None:
    table = table_of(*HOSTS)
    pipeline = pipeline_of(FreeMemoryWeigher=1.0, FreeVcpusWeigher=2.0)
    weights = weights_of(table, FreeMemoryWeigher=1.0, FreeVcpusWeigher=2.0)
    assert weights == pytest.approx([1 / 3 + 1.0, 2 / 3 + 2.0, 1.0 + 0.0])
    told = parts(pipeline, table, asking(), 1)
    assert told == pytest.approx({"FreeMemoryWeigher": 2 / 3, "FreeVcpusWeigher": 2.0})


def test_a_multiplier_of_nought_silences_a_weigher() -> None:
    pipeline = pipeline_of(FreeMemoryWeigher=0.0, FreeVcpusWeigher=1.0)
    assert parts(pipeline, table_of(*HOSTS), asking(), 0).keys() == {"FreeVcpusWeigher"}


def test_a_pick_changes_the_weight_of_its_host_only() -> None:
    table = table_of(*HOSTS)
    before = weights_of(table, FreeMemoryWeigher=1.0)
    table.take(HostIndex(2), {"MEMORY_MB": 2500})
    after = weights_of(table, FreeMemoryWeigher=1.0)
    assert after[:2] == before[:2]
    assert after[2] == pytest.approx(500 / 3000)


def test_a_larger_host_changes_the_scale() -> None:
    table = table_of(*HOSTS)
    table.greatest("MEMORY_MB")
    fill(table, row_for(table, 4, "d"), host("d", memory_mb=6000))
    assert weights_of(table, FreeMemoryWeigher=1.0) == pytest.approx([1 / 6, 1 / 3, 0.5, 1.0])
