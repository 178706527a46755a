"""The parsers of query parameters."""

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


def test_class_names_are_not_validated() -> None:
    assert parse_resources(":1, VCPU:+2") == {"": 1, " VCPU": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1024. Got: empty string."),
        (" ", "1024. Got: empty string."),
        ("VCPU", "Badly formed resources parameter."),
        ("VCPU:1,DISK_GB", "1024. Got: DISK_GB."),
        ("VCPU:1,", "1024. Got: ."),
        ("VCPU:1:2", "1024. Got: VCPU:1:2."),
        ("VCPU:", "Requested resource VCPU expected positive integer amount. Got: ."),
        ("VCPU:x", "Requested resource VCPU expected positive integer amount. Got: x."),
        ("VCPU:1.5", "expected positive integer amount. Got: 1.5."),
        ("VCPU:²", "expected positive integer amount. Got: ²."),
        ("VCPU:--1", "expected positive integer amount. Got: --1."),
        ("VCPU:0", "Requested resource VCPU requires amount >= 1. Got: 0."),
        ("VCPU:-0", "Requested resource VCPU requires amount >= 1. Got: 0."),
        ("VCPU:-007", "Requested resource VCPU requires amount >= 1. Got: -7."),
    ],
)
def test_malformed_resources_are_rejected(text: str, message: str) -> None:
    with pytest.raises(Invalid) as refusal:
        parse_resources(text)
    assert refusal.value.message.endswith(message) or refusal.value.message.startswith(message)


def test_required_traits_are_all_of_all_values() -> None:
    required, forbidden = parse_required(["A, !B", "in:C, D", "!!E"])
    assert required == (frozenset("A"), frozenset("CD"))
    assert forbidden == frozenset("BE")


@pytest.mark.parametrize("value", ["", "!", "A,,B", "A, ,B", "in:", "in:A,,B"])
def test_every_trait_has_a_name(value: str) -> None:
    with pytest.raises(Invalid, match=r"of the form: .*Got an empty trait in: "):
        parse_required([value])


def test_any_of_accepts_no_forbidden_trait() -> None:
    with pytest.raises(Invalid, match=r"does not support forbidden traits\. Got: in:A,!B"):
        parse_required(["in:A,!B"])


def test_any_of_must_begin_the_value() -> None:
    """Elsewhere ``in:`` is part of a name, which no trait has."""
    assert parse_required(["A,in:B", "!in:C"]) == (
        (frozenset({"A"}), frozenset({"in:B"})),
        frozenset({"in:C"}),
    )


def test_memberships_are_all_of_all_values() -> None:
    required, forbidden = parse_member_of([A.upper(), f"in:{A},{B}", f"!{B}", f"!in:{A}"])
    assert required == (frozenset({A}), frozenset({A, B}))
    assert forbidden == frozenset({A, B})


@pytest.mark.parametrize("value", [f"{A},{B}", f"!{A},{B}", f"!!in:{A},{B}"])
def test_several_aggregates_need_a_prefix(value: str) -> None:
    with pytest.raises(Invalid, match="must be prefixed with the 'in:' or '!in:' keyword"):
        parse_member_of([value])


@pytest.mark.parametrize("value", ["", "rack", "in:rack", f"in:{A},!{B}", "in:", f"!!{A}"])
def test_malformed_memberships_are_rejected(value: str) -> None:
    with pytest.raises(Invalid, match=r"to contain valid UUID\(s\)"):
        parse_member_of([value])
