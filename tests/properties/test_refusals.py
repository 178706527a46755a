"""Refusals and near misses on thousands of small tables, compared with a loop over hosts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling import refusals
from innkeeper.scheduling.pipeline import select
from tests.properties.test_plans import SKETCHES, SPECS, SlowHost
from tests.support.tables import Sketch, picture, pipeline_of, table_of

FILTERS = pipeline_of().filters
NAMES = [each.NAME for each in FILTERS]
MOST = 5


def refused_by(sketch: Sketch, spec: RequestSpec) -> list[str]:
    host = SlowHost(sketch)
    return [name for name in NAMES if not host.may_pass(name, spec)]


def shortage(sketch: Sketch, spec: RequestSpec) -> float:
    """The shares of the amounts that the host lacks."""
    host = SlowHost(sketch)
    total = 0.0
    for name, amount in spec.amounts.items():
        left = max(0, sketch.free.get(name, 0))
        if not host.has(name, amount):
            total += (amount - left) / amount if left < amount else 1.0
    return total


def distance(sketch: Sketch, spec: RequestSpec) -> tuple[int, float]:
    by = refused_by(sketch, spec)
    return len(by) + ("ForcedHostFilter" in by) * len(NAMES), shortage(sketch, spec)


@settings(max_examples=500)
@given(SKETCHES, SPECS)
def test_filters_are_counted_as_a_loop_over_hosts_would(
    sketches: list[Sketch], spec: RequestSpec
) -> None:
    table = table_of(*sketches)
    before = picture(table)
    told = refusals.tallies(refusals.look(FILTERS, table, spec), table, spec)
    refused = [refused_by(each, spec) for each in sketches]
    assert {each.filter_name: each.refused for each in told} == {
        name: count for name in NAMES if (count := sum(name in by for by in refused))
    }
    for each in told:
        assert each.alone == sum(by == [each.filter_name] for by in refused)
        assert each.removed == sum(by[:1] == [each.filter_name] for by in refused)
    _, taken = select(pipeline_of(), table, spec)
    assert [(each.filter_name, each.removed) for each in told if each.removed] == [
        (each.NAME, count) for each, count in taken
    ]
    assert picture(table) == before


@settings(max_examples=500)
@given(SKETCHES, SPECS)
def test_near_misses_are_the_nearest(sketches: list[Sketch], spec: RequestSpec) -> None:
    table = table_of(*sketches)
    told = refusals.nearest(refusals.look(FILTERS, table, spec), table, spec, MOST)
    by_name = {each.name: each for each in sketches}
    refused = sorted(distance(each, spec) for each in sketches if refused_by(each, spec))
    found = [distance(by_name[each.host], spec) for each in told]
    assert len({each.host for each in told}) == len(told)
    assert [count for count, _ in found] == [count for count, _ in refused[:MOST]]
    assert [each for _, each in found] == pytest.approx([each for _, each in refused[:MOST]])
    for each in told:
        names = [objection.filter_name for objection in each.objections]
        assert names == refused_by(by_name[each.host], spec)
        assert each.shortage == pytest.approx(shortage(by_name[each.host], spec))
    again = refusals.look(FILTERS, table_of(*sketches), spec)
    assert refusals.nearest(again, table_of(*sketches), spec, MOST) == told


@settings(max_examples=200)
@given(SKETCHES, SPECS)
def test_one_hosts_verdicts_are_those_of_all_at_once(
    sketches: list[Sketch], spec: RequestSpec
) -> None:
    table = table_of(*sketches)
    for sketch in sketches:
        told = refusals.verdicts(FILTERS, table, spec, table.index_by_name[sketch.name])
        assert [each.filter_name for each in told] == NAMES
        refusing = [each.filter_name for each in told if each.objection is not None]
        assert refusing == refused_by(sketch, spec)
        assert all(each.is_requested for each in told if each.objection is not None)
