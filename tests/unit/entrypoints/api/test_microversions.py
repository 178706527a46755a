"""Steps of microversions: merged by version, and applied in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step, VersionTable, passage
from innkeeper.entrypoints.api.options import Options, with_options
from innkeeper.entrypoints.api.tables import APIS


class Module:
    """A resource's module in a ``versions/`` folder."""

    def __init__(self, *steps: Step) -> None:
        self.STEPS: Sequence[Step] = steps


def table(*modules: Module) -> VersionTable:
    """A table from 1.0 to 1.9."""
    return VersionTable.of(("thing",), Version(1, 0), Version(1, 9), *modules)


def test_steps_of_several_modules_are_merged_by_version() -> None:
    first, second, third = (Edge("GET", path) for path in ("/a", "/b", "/c"))
    found = table(
        Module(
            Step(Version(1, 2), "Things are closed.", (first,)),
            Step(Version(1, 2), "A is shown.", (second,)),
        ),
        Module(Step(Version(1, 1), "B."), Step(Version(1, 2), "Things are closed.", (third,))),
    )
    assert found.steps == (
        Step(Version(1, 1), "B."),
        Step(Version(1, 2), "Things are closed. A is shown.", (first, second, third)),
    )


@pytest.mark.parametrize("minors", [(3, 2), (10,), (0,)])
def test_steps_are_in_order_and_within_the_table(minors: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError):
        table(Module(*(Step(Version(1, minor), "Something.") for minor in minors)))


def test_each_schema_is_made_from_the_following_one() -> None:
    def without_c(schema: Schema) -> Schema:
        return {"keys": [key for key in schema["keys"] if key != "c"]}

    def without_b(schema: Schema) -> Schema:
        return {"keys": [key for key in schema["keys"] if key != "b"]}

    found = table(
        Module(
            Step(Version(1, 1), "Anything.", (Edge("PUT", "/a", body_before={"keys": []}),)),
            Step(Version(1, 2), "B.", (Edge("PUT", "/a", body_before=without_b),)),
            Step(Version(1, 3), "C.", (Edge("PUT", "/a", body_before=without_c),)),
        )
    )
    newest: Schema = {"keys": ["a", "b", "c"]}

    def body(minor: int) -> Schema | None:
        return passage(found.after(Version(1, minor)), "PUT", "/a", newest, None).body

    assert [body(minor) for minor in range(3)] == [
        {"keys": []},
        {"keys": ["a"]},
        {"keys": ["a", "b"]},
    ]
    assert body(3) is newest


@dataclass(frozen=True)
class Wished:
    """Options of a resource."""

    is_fast: bool = False
    is_safe: bool = True


@dataclass
class Request:
    """The part of a call that an upgrade of options needs."""

    options: Options = field(default_factory=Options)


def test_options_are_the_newest_until_a_step_sets_them() -> None:
    request = Request()
    assert request.options.of(Wished) == Wished()
    for up in (with_options(Wished, is_fast=True), with_options(Wished, is_safe=False)):
        up(request)
    assert request.options.of(Wished) == Wished(is_fast=True, is_safe=False)


def test_an_unknown_option_fails_when_the_step_is_made() -> None:
    with pytest.raises(TypeError):
        with_options(Wished, is_dear=True)


@pytest.mark.parametrize("name", [name for name, api in APIS.items() if api.versions])
def test_every_edge_applies_to_a_route(name: str) -> None:
    api = APIS[name]
    assert api.versions is not None
    known = {(route.method, route.path) for route in api.routes}
    strange = [
        (edge.method, edge.path)
        for step in api.versions.steps
        for edge in step.edges
        if edge.path != "*" and (edge.method, edge.path) not in known
    ]
    assert strange == []
