"""The parser of the query for allocation candidates."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from innkeeper.domain.candidates import CandidateQuery, RequestGroup
from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.placement.candidate_queries import (
    CLASSES_MAX,
    CONDITIONS_MAX,
    GROUPS_MAX,
    LIST_CANDIDATES,
    candidate_query,
)
from innkeeper.entrypoints.api.placement.faults import query_refusal
from innkeeper.entrypoints.api.placement.routes import PLACEMENT
from innkeeper.entrypoints.api.validation import Validator, query_for_schema

A = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
B = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
SCHEMA = Validator(LIST_CANDIDATES, query_refusal)


def checked(query: dict[str, list[str]]) -> CandidateQuery:
    SCHEMA.check(query_for_schema(query, PLACEMENT.has_single_query_values))
    return candidate_query(query)


def read(text: str) -> CandidateQuery:
    return checked(parse_qs(text, keep_blank_values=True))


def refusal(text: str) -> tuple[str, str]:
    with pytest.raises(Invalid) as refused:
        read(text)
    return refused.value.code, refused.value.message


def test_one_group() -> None:
    asked = read(
        f"resources=VCPU:2,MEMORY_MB:512&required=HW_A,!HW_B&required=in:HW_C,HW_D"
        f"&member_of=in:{A},{B}&member_of=!{B}&in_tree={A.upper()}&limit=7"
    )
    group = RequestGroup(
        suffix="",
        resources={"VCPU": 2, "MEMORY_MB": 512},
        required=(frozenset({"HW_A"}), frozenset({"HW_C", "HW_D"})),
        forbidden=frozenset({"HW_B"}),
        member_of=(frozenset({A, B}),),
        not_member_of=frozenset({B}),
        in_tree=A,  # type: ignore[arg-type]
    )
    assert asked == CandidateQuery(groups=(group,), limit=7)


def test_groups_stay_in_the_order_of_the_query() -> None:
    asked = read(
        "required_B=T&resources_A=VCPU:1&resources=DISK_GB:1&resources_B=VCPU:2&group_policy=none"
    )
    assert [group.suffix for group in asked.groups] == ["_B", "_A", ""]


def test_groups_apart() -> None:
    asked = read("resources1=VCPU:1&resources2=VCPU:2&group_policy=isolate")
    assert [group.suffix for group in asked.groups] == ["1", "2"]
    assert asked.is_isolated
    assert not read("resources1=VCPU:1&resources2=VCPU:2&group_policy=none").is_isolated


def test_one_suffixed_group_needs_no_policy() -> None:
    assert not read("resources1=VCPU:1&resources=VCPU:2").is_isolated


def test_constraints_on_trees() -> None:
    asked = read(
        "resources_A=VCPU:1&required_B=T&same_subtree=_A, _B&same_subtree=_A"
        "&root_required=HW_A,!!HW_B&group_policy=none"
    )
    assert asked.same_subtrees == (frozenset({"_A", "_B"}), frozenset({"_A"}))
    assert asked.root_required == frozenset({"HW_A"})
    assert asked.root_forbidden == frozenset({"HW_B"})
    assert asked.groups[1].resources == {}


def test_older_versions_use_one_provider_of_a_tree() -> None:
    query = {"resources": ["VCPU:1"]}
    assert candidate_query(query, takes_one_of_a_tree=True).takes_one_of_a_tree
    assert not candidate_query(query).takes_one_of_a_tree


def test_which_of_repeated_parameters_counts() -> None:
    asked = read(
        f"resources=VCPU:1&resources=VCPU:2&in_tree={A}&in_tree={B}&limit=1&limit=2"
        "&group_policy=isolate&group_policy=none"
    )
    assert asked.groups[0].resources == {"VCPU": 2}
    assert asked.groups[0].in_tree == B
    assert asked.limit == 1
    assert asked.is_isolated


def test_a_limit_beyond_all_candidates_stays_a_small_number() -> None:
    assert read("resources=VCPU:1&limit=" + "9" * 5000).limit == 2**31 - 1
    assert read("resources=VCPU:1&limit=12%0A").limit == 12


def test_a_trait_in_one_choice_may_be_forbidden() -> None:
    asked = read("resources=VCPU:1&required=in:HW_A,HW_B&required=!HW_B")
    assert asked.groups[0].forbidden == frozenset({"HW_B"})


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("", "query.missing_value", "There must be at least one resources"),
        ("limit=1", "query.missing_value", "There must be at least one resources"),
        ("required_A=T&same_subtree=_A", "query.missing_value", "There must be at least one"),
        (
            "resources_A=VCPU:1&required_B=T",
            "query.bad_value",
            "should be specified in `same_subtree` query param: bad group(s) - ['_B'].",
        ),
        ("resources_A=VCPU:1&in_tree=" + A, "query.bad_value", "bad group(s) - ['']."),
        (
            "resources=VCPU:1&same_subtree=_A",
            "query.bad_value",
            "Real suffixes should be specified in `same_subtree`: ['_A'] not found in [''].",
        ),
        ("resources=VCPU:1&same_subtree=", "query.bad_value", "Empty string (unsuffixed"),
        ("resources_A=VCPU:1&same_subtree=_A,", "query.bad_value", "Empty string (unsuffixed"),
        (
            "resources=VCPU:1&root_required=A&root_required=A",
            "query.duplicate_key",
            "Query parameter 'root_required' may be specified only once.",
        ),
        (
            "resources=VCPU:1&root_required=B,A,!A,!B",
            "query.bad_value",
            "Conflicting required and forbidden traits found in root_required: A, B",
        ),
        ("resources=VCPU:1&root_required=", "undefined_code", "Got an empty trait in: "),
        ("resources=VCPU:1&root_required=in:A", "undefined_code", "only supported since"),
        (
            "resources=VCPU:1&required=A,!A",
            "undefined_code",
            "found in the following traits keys: required: (A)",
        ),
        (
            "resources1=VCPU:1&required1=in:B,A&required1=!A,!B",
            "undefined_code",
            "found in the following traits keys: required1: (A, B)",
        ),
        (
            "resources1=VCPU:1&resources2=VCPU:1",
            "undefined_code",
            'The "group_policy" parameter is required when specifying more than one',
        ),
        ("resources=VCPU:1&in_tree=rack", "undefined_code", "to be a format of uuid. Got: rack"),
        ("resources=VCPU:x&resources=VCPU:1", "undefined_code", "expected positive integer"),
        ("resources=VCPU:1&in_tree=x&in_tree=" + A, "undefined_code", "format of uuid. Got: x"),
        ("resources=VCPU:1&limit=0", "undefined_code", "'0' does not match '^[1-9][0-9]*$'"),
        ("resources=VCPU:1&limit=%D9%A3", "undefined_code", "does not match '^[1-9][0-9]*$'"),
        ("resources=VCPU:1&limit=", "undefined_code", "'' does not match '^[1-9][0-9]*$'"),
        ("resources=VCPU:1&limit=1&limit=x", "undefined_code", "'x' does not match"),
        ("resources=VCPU:1&limit=x&limit=1", "undefined_code", "'x' does not match"),
        ("resources=VCPU:1&limit=1%0A2&limit=1", "undefined_code", "does not match"),
        (
            "resources=VCPU:1&group_policy=both",
            "undefined_code",
            "'both' is not one of ['none', 'isolate']",
        ),
        ("resources=VCPU:1&group_policy=x&group_policy=none", "undefined_code", "'x' is not"),
        (
            "resources_A.B=VCPU:1",
            "undefined_code",
            "'resources_A.B' does not match any of the regexes: '^in_tree([a-zA-Z0-9_-]{1,64})",
        ),
        ("resources" + "a" * 65 + "=VCPU:1", "undefined_code", "does not match any of the"),
        ("resources%0A=VCPU:1", "undefined_code", "is not a valid parameter"),
        ("resources_%C3%84=VCPU:1", "undefined_code", "does not match any of the regexes"),
        ("colour=red", "undefined_code", "'colour' does not match any of the regexes"),
    ],
)
def test_errors_have_the_texts_of_the_original(query: str, code: str, message: str) -> None:
    found_code, found = refusal(query)
    assert found_code == code
    assert message in found


def test_too_many_groups() -> None:
    def several(count: int) -> str:
        return "group_policy=none&" + "&".join(f"resources{i}=VCPU:1" for i in range(count))

    assert len(read(several(GROUPS_MAX)).groups) == GROUPS_MAX
    assert refusal(several(GROUPS_MAX + 1))[1].endswith("64 request groups in one query.")


def test_too_many_conditions() -> None:
    def several(count: int) -> str:
        return "resources=VCPU:1&required=" + ",".join(f"T{i}" for i in range(count))

    assert len(read(several(CONDITIONS_MAX - 1)).groups[0].required) == CONDITIONS_MAX - 1
    for query in (
        several(CONDITIONS_MAX),
        several(CONDITIONS_MAX).replace("=T0", "=in:T0"),
        several(CONDITIONS_MAX).replace("&required", "&root_required"),
    ):
        assert refusal(query)[1].endswith("1024 conditions in one query.")


@pytest.mark.parametrize("sign", ["in:", "!in:"])
def test_every_aggregate_is_a_condition(sign: str) -> None:
    def several(count: int) -> str:
        uuids = ",".join(f"00000000-0000-0000-0000-{number:012}" for number in range(count))
        return f"resources=VCPU:1&member_of={sign}{uuids}"

    assert read(several(CONDITIONS_MAX - 1)).groups
    assert refusal(several(CONDITIONS_MAX))[1].endswith("1024 conditions in one query.")


def test_every_group_in_a_subtree_is_a_condition() -> None:
    groups = "group_policy=none&resources_A=VCPU:1&resources_B=VCPU:1"
    often = groups + "&same_subtree=_A,_B" * (CONDITIONS_MAX // 2 - 1)
    assert len(read(often).same_subtrees) == CONDITIONS_MAX // 2 - 1
    too_often = often + "&same_subtree=_A,_B"
    assert refusal(too_often)[1].endswith("1024 conditions in one query.")


def test_too_many_classes() -> None:
    def several(count: int) -> str:
        return "resources=" + ",".join(f"CUSTOM_{number}:1" for number in range(count))

    assert len(read(several(CLASSES_MAX)).groups[0].resources) == CLASSES_MAX
    assert refusal(several(CLASSES_MAX + 1))[1].endswith("256 resource classes in one group.")


NAMES = st.sampled_from(
    (
        "resources",
        "resources1",
        "resources\n",
        "required1",
        "required_A",
        "required\u2028",
        "member_of",
        "in_tree_A",
        "limit",
        "group_policy",
        "root_required",
        "same_subtree",
    )
)
VALUES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["VCPU:1", "A,!A", "in:A,B", "!in:" + A, A, "none", "_A,1", "1", "\ud800"]),
)


@given(st.dictionaries(NAMES, st.lists(VALUES, min_size=1, max_size=3)))
def test_any_query_is_parsed_or_rejected(query: dict[str, list[str]]) -> None:
    try:
        asked = checked(query)
    except Invalid as refused:
        assert re.search(r"\S", refused.message)
        return
    suffixes = [group.suffix for group in asked.groups]
    assert len(suffixes) == len(set(suffixes))
    assert any(group.resources for group in asked.groups)
    assert all(amount > 0 for group in asked.groups for amount in group.resources.values())
