"""Filters by the metadata of hosts' aggregates."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import Rules
from innkeeper.scheduling.filters import (
    aggregate_extra_specs,
    aggregate_projects,
    isolated_aggregates,
)
from innkeeper.snapshot.columns import HostTable
from tests.support.host_facts import in_aggregates, passed_by, say
from tests.support.tables import asking, host, table_of

EVERYBODY = {"none", "one", "two", "both"}
MEMBERS = {"none": (), "one": (1,), "two": (2,), "both": (1, 2)}


def cloud(one: Mapping[str, str], two: Mapping[str, str] = {}) -> HostTable:
    """Four hosts: in no aggregate, in the first, in the second, and in both."""
    table = table_of(*(host(name) for name in MEMBERS))
    return in_aggregates(say(table, {1: one, 2: two}), MEMBERS)


def specs(**pairs: str) -> tuple[tuple[str, str], ...]:
    return tuple(pairs.items())


SCOPE = "aggregate_instance_extra_specs:"
ASKED = [
    pytest.param((), EVERYBODY, id="nothing asked for"),
    pytest.param(((f"{SCOPE}ssd", "true"),), {"one", "both"}, id="with the scope"),
    pytest.param((("ssd", "true"),), {"one", "both"}, id="and without one"),
    pytest.param((("hw:ssd", "true"),), EVERYBODY, id="another scope is ignored"),
    pytest.param((("group_policy", "none"),), EVERYBODY, id="a group policy is ignored"),
    pytest.param((("ssd", "false"),), set(), id="another value"),
    pytest.param((("gpu", "true"),), set(), id="a key that no aggregate has"),
    pytest.param((("tier", "gold"),), {"two", "both"}, id="one of a list"),
    pytest.param((("tier", "gold, silver"),), set(), id="the whole list is not a value"),
    pytest.param((("ssd", "true"), ("tier", "gold")), {"both"}, id="all of several"),
    pytest.param((("size", ">= 10"),), {"two", "both"}, id="a number"),
    pytest.param((("size", "<or> 5 <or> 16"),), {"two", "both"}, id="one of several"),
    pytest.param((("size", ">= 17"),), set(), id="too small a number"),
    pytest.param((("tier", ">= 1"),), set(), id="a text is no number"),
    pytest.param((("tier", "<in> old"),), {"two", "both"}, id="a part of a text"),
    pytest.param((("tier", "s!= gold"),), {"two", "both"}, id="one matching value suffices"),
    pytest.param((("ssd", "!= 1"),), set(), id="a text never matches a numeric !="),
]


@pytest.mark.parametrize(("asked", "left"), ASKED)
def test_aggregate_extra_specs_filter(asked: tuple[tuple[str, str], ...], left: set[str]) -> None:
    table = cloud({"ssd": "true", "size": "4"}, {"tier": "gold, silver", "size": "16"})
    assert passed_by(aggregate_extra_specs, table, asking(flavor_specs=asked)) == left


def test_aggregate_extra_specs_filter_counts_hosts() -> None:
    table = cloud({"ssd": "true"})
    spec = asking(flavor_specs=specs(ssd="true", tier="<or> gold"))
    assert aggregate_extra_specs.missing(table, spec) == (
        "an aggregate with ssd plain true: on 2 hosts; an aggregate with tier <or> gold: on 0 hosts"
    )


def test_aggregate_extra_specs_filter_lacks() -> None:
    table = cloud({"ssd": "true"})
    spec = asking(flavor_specs=specs(ssd="true", tier="<or> gold"))
    told = {
        name: aggregate_extra_specs.lacks(table, spec, table.index_by_name[name])
        for name in ("one", "two")
    }
    assert told == {
        "one": ["no aggregate with tier <or> gold"],
        "two": ["no aggregate with ssd plain true", "no aggregate with tier <or> gold"],
    }


def test_an_operator_without_operand_is_refused() -> None:
    with pytest.raises(Invalid, match="without an operand"):
        aggregate_extra_specs.demands_of(specs(ssd="<or>"))


def test_without_aggregates_the_filters_do_not_apply() -> None:
    table = table_of(host("a"))
    asked = asking(flavor_specs=specs(ssd="true"))
    assert passed_by(aggregate_extra_specs, table, asked) == set()
    assert passed_by(aggregate_projects, table, asking()) == {"a"}
    assert passed_by(isolated_aggregates, table, asking()) == {"a"}


MINE, THEIRS = {"filter_tenant_id": "mine"}, {"filter_tenant_id": "theirs"}
SEVERAL = {"filter_tenant_id": "theirs", "filter_tenant_id_2": "others, mine"}
STAY = {"limit_tenants_to_aggregate": "true"}
FREE = EVERYBODY - {"both"}
TENANCY = [
    pytest.param({}, {}, EVERYBODY, id="no project is named: open to all"),
    pytest.param(MINE, {}, EVERYBODY, id="a project may use its own and unnamed aggregates"),
    pytest.param(THEIRS, {}, {"none", "two"}, id="other projects are excluded"),
    pytest.param(
        THEIRS, MINE, {"none", "two", "both"}, id="one of two aggregates names the project"
    ),
    pytest.param(SEVERAL, {}, EVERYBODY, id="named under another key, in a list"),
    pytest.param(MINE | STAY, {}, {"one", "both"}, id="limited projects stay in their aggregates"),
    pytest.param(THEIRS | STAY, {}, {"none", "two"}, id="another project's limit has no effect"),
    pytest.param(
        MINE | STAY, MINE, {"one", "two", "both"}, id="a limited project may use all its aggregates"
    ),
    pytest.param(STAY, {}, EVERYBODY, id="a limit without projects has no effect"),
    pytest.param(MINE | {"limit_tenants_to_aggregate": "no"}, {}, EVERYBODY, id="no is no limit"),
    pytest.param(
        MINE | {"limit_tenants_to_aggregate": "True"},
        {},
        {"one", "both"},
        id="the limit in capitals",
    ),
    pytest.param(
        {"filter_tenant_id": ""}, {}, {"none", "two"}, id="an empty name matches no project"
    ),
]


@pytest.mark.parametrize(("one", "two", "left"), TENANCY)
def test_aggregate_multi_tenancy_isolation(
    one: Mapping[str, str], two: Mapping[str, str], left: set[str]
) -> None:
    assert passed_by(aggregate_projects, cloud(one, two), asking(project_id="mine")) == left


def test_aggregate_multi_tenancy_isolation_missing() -> None:
    mine = asking(project_id="mine")
    assert aggregate_projects.missing(cloud(MINE, THEIRS), mine) == (
        "2 hosts are in aggregates for this project, 1 are open to all projects"
    )
    assert aggregate_projects.missing(cloud(MINE | STAY), mine) == (
        "2 hosts are in aggregates for this project, and it may use no other hosts"
    )


KEPT = {"trait:HW_GPU": "required", "trait:HW_SSD": "forbidden", "color": "red"}
TRAITS = [
    pytest.param(set(), {"none", "two"}, id="a plain request stays out"),
    pytest.param({"HW_GPU"}, EVERYBODY, id="one that requires the trait may be anywhere"),
    pytest.param({"HW_SSD"}, {"none", "two"}, id="another trait is no ticket"),
]


@pytest.mark.parametrize(("required", "left"), TRAITS)
def test_isolated_aggregates_filter(required: set[str], left: set[str]) -> None:
    spec = asking(required_traits=frozenset(required))
    assert passed_by(isolated_aggregates, cloud(KEPT), spec) == left


def test_all_traits_of_all_aggregates_must_be_required() -> None:
    table = cloud({"trait:A": "required"}, {"trait:B": "required"})
    for required, left in (("A", {"none", "one"}), ("AB", EVERYBODY)):
        spec = asking(required_traits=frozenset(required))
        assert passed_by(isolated_aggregates, table, spec) == left
        assert isolated_aggregates.missing(table, spec) == (
            f"traits that the request requires: {', '.join(required)}"
        )


def test_isolation_by_traits_can_be_switched_off() -> None:
    spec = asking(rules=Rules(isolates_aggregates_by_trait=False))
    assert passed_by(isolated_aggregates, cloud(KEPT), spec) == EVERYBODY
