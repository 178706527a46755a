"""Fixed scales: with them, a host weighs the same in every zone, whatever other hosts are there."""

from __future__ import annotations

import math

import pytest

from innkeeper.scheduling import scales
from innkeeper.scheduling.pipeline import weigh
from innkeeper.scheduling.weighers.catalogue import WEIGHERS
from tests.support.tables import asking, host, pipeline_of, table_of

WHOLE = slice(None)
ONE = host("one", vcpus=64, memory_mb=262_144, disk_gb=2048, traits=("FAST",))
LARGER = host("larger", vcpus=192, memory_mb=2_000_000, disk_gb=9000, free={"VGPU": 4})
OF_THE_TABLE = ("FreeMemoryWeigher", "FreeVcpusWeigher", "FreeDiskWeigher", "LeastLoadedWeigher")


@pytest.mark.parametrize("name", WEIGHERS)
def test_with_fixed_scales_no_weigher_depends_on_other_hosts(name: str) -> None:
    weighers = pipeline_of(**{name: 1.0}).weighers
    spec = asking(has_fixed_scales=True)
    alone, beside = (
        weigh(weighers, table_of(*each), spec, WHOLE) for each in ((ONE,), (ONE, LARGER))
    )
    assert (alone is None) == (beside is None)
    if alone is not None and beside is not None:
        assert alone[0] == beside[0], (
            f"With has_fixed_scales, {name} must not depend on other hosts: see scales.scale_of."
        )


@pytest.mark.parametrize("name", OF_THE_TABLE)
def test_without_fixed_scales_the_largest_host_weighs_one(name: str) -> None:
    weigher = WEIGHERS[name]
    assert weigher.scale(table_of(ONE), asking()) < weigher.scale(table_of(ONE, LARGER), asking())


def test_the_constants_apply_to_free_amounts() -> None:
    weighers = pipeline_of(FreeMemoryWeigher=1.0, FreeVcpusWeigher=1.0, FreeDiskWeigher=1.0)
    given = weigh(weighers.weighers, table_of(ONE), asking(has_fixed_scales=True), WHOLE)
    assert given is not None
    assert given.tolist() == [0.25 + 0.25 + 0.03125]


def test_every_unused_trait_and_class_of_a_misfit_weighs_one() -> None:
    table = table_of(ONE, LARGER)
    column = WEIGHERS["MisfitWeigher"].column(table, asking(has_fixed_scales=True), WHOLE)
    assert column.tolist() == [-1.0, -1.0]
    by_rarity = WEIGHERS["MisfitWeigher"].column(table, asking(), WHOLE)
    assert by_rarity.tolist() == [-0.5, -0.5]


def test_other_classes_have_a_scale_and_all_are_powers_of_two() -> None:
    assert scales.fixed("CUSTOM_GOLD") == scales.OTHER_SCALE
    for scale in (*scales.FIXED_SCALES.values(), scales.OTHER_SCALE):
        assert math.frexp(scale)[0] == 0.5


def test_the_two_kinds_of_scales_have_different_shapes() -> None:
    pipeline = pipeline_of(FreeMemoryWeigher=1.0)
    assert pipeline.shape(asking()) != pipeline.shape(asking(has_fixed_scales=True))
