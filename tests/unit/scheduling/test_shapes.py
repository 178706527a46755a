"""The shape of a request: equal for requests that the same filters and weighers judge alike."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from innkeeper.domain.placing import GroupRule, RequestSpec
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.scheduling.reading import frozen
from tests.support.own_plugins import DeclaredRackFilter, RackFilter
from tests.support.tables import asking

NESTED = {"rack": ["a", {"b": [1, None]}], "more": {"x": True}}


def shape(hints: dict[str, Any], *filters: Any) -> object:
    return Pipeline(filters, ()).shape(asking(hints=hints))


def test_equal_hints_have_one_shape_and_different_ones_two() -> None:
    again = {"more": {"x": True}, "rack": ["a", {"b": [1, None]}]}
    assert shape(NESTED, RackFilter) == shape(again, RackFilter)
    assert hash(shape(NESTED, RackFilter)) == hash(shape(again, RackFilter))
    for other in ({}, {**NESTED, "more": {"x": 1}}, {"rack": ["a"]}):
        assert shape(other, RackFilter) != shape(NESTED, RackFilter)


def test_only_the_hints_that_are_declared_count() -> None:
    assert shape({"rack": 1, "x": 1}, DeclaredRackFilter) == shape(
        {"rack": 1, "x": 2}, DeclaredRackFilter
    )
    assert shape({"rack": 1}, DeclaredRackFilter) != shape({"rack": 2}, DeclaredRackFilter)
    both = (DeclaredRackFilter, RackFilter)
    assert shape({"rack": 1, "x": 1}, *both) != shape({"rack": 1, "x": 2}, *both)


def test_true_and_one_are_not_alike() -> None:
    values: list[Any] = [True, 1, 1.0, "1", None, [], {}, [1], [[1]]]
    keys = [frozen(each) for each in values]
    assert len(set(keys)) == len(keys)
    assert frozen((1, 2)) == frozen([1, 2])


FIELDS = [each.name for each in msgspec.structs.fields(RequestSpec)]


@pytest.mark.parametrize("name", [*FIELDS, "names_dedicated"])
def test_every_field_can_be_read(name: str) -> None:
    class Reader(RackFilter):
        READS = (name,)

    reader: Any = Reader
    spec = asking(hints=NESTED, group=GroupRule("affinity", {"h": 1}), query=("=", "$host", ["a"]))
    hash(Pipeline((reader,), ()).shape(spec))
