"""The provider list's query parameters, read."""

from __future__ import annotations

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.placement.queries import (
    parse_member_of,
    parse_required,
    parse_resources,
)

A = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
B = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"


def test_resources_are_amounts_by_class() -> None:
    assert parse_resources("VCPU:2,MEMORY_MB:0512") == {"VCPU": 2, "MEMORY_MB": 512}


def test_an_amount_beyond_all_units_stays_a_small_number() -> None:
    assert parse_resources("VCPU:" + "9" * 5000) == {"VCPU": 2**31}


@pytest.mark.parametrize(
    "text",
    ["", "VCPU", "VCPU:", ":1", "VCPU:x", "VCPU:1.5", "VCPU:-1", "VCPU:0", "VCPU:1,", "VCPU:²"],
)
def test_other_resources_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match="Invalid query string parameters"):
        parse_resources(text)


def test_required_traits_are_all_of_all_values() -> None:
    required, forbidden = parse_required(["A,!B", "in:C,D", "!!E"])
    assert required == (frozenset("A"), frozenset("CD"))
    assert forbidden == frozenset("BE")


@pytest.mark.parametrize("value", ["", "!", "A,,B", "in:", "in:A,!B", "!in:A,B", "A,in:B"])
def test_other_required_traits_are_refused(value: str) -> None:
    with pytest.raises(Invalid, match="Expected 'required' parameter value of the form"):
        parse_required([value])


def test_memberships_are_all_of_all_values() -> None:
    required, forbidden = parse_member_of([A.upper(), f"in:{A},{B}", f"!{B}", f"!in:{A}"])
    assert required == (frozenset({A}), frozenset({A, B}))
    assert forbidden == frozenset({A, B})


@pytest.mark.parametrize("value", ["", "rack", f"{A},{B}", f"in:{A},!{B}", "in:", f"!!{A}"])
def test_other_memberships_are_refused(value: str) -> None:
    with pytest.raises(Invalid, match=r"to contain valid UUID\(s\)"):
        parse_member_of([value])
