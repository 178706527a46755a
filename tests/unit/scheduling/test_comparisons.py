"""The language of extra specs: valid texts, refused texts, and the values that meet them."""

from __future__ import annotations

from typing import Any

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import Comparison
from innkeeper.scheduling import comparisons
from innkeeper.scheduling.comparisons import PLAIN
from tests.support.tables import demand, host, table_of

WHOLE = slice(None)
ABSENT = object()


def is_met(value: Any, text: str) -> bool:
    """Whether a host with this capability meets this extra spec."""
    facts = {} if value is ABSENT else {"fact": value}
    # Another host has another value, so that there are several codes.
    table = table_of(host("other", capabilities={"fact": "neighbour"}), host("asked"))
    table.set_capabilities(table.index_by_name["asked"], facts)
    mask = comparisons.mask(table.capability("fact"), demand("fact", text), WHOLE)
    row = comparisons.mask(table.capability("fact"), demand("fact", text), slice(1, 2))
    assert mask.shape == (2,)
    assert bool(row[0]) == bool(mask[1])
    return bool(mask[1])


MET = [
    pytest.param(8, "= 8", id="a single equals sign is at least, met exactly"),
    pytest.param(9, "= 8", id="a single equals sign is at least, met with more"),
    pytest.param(8, "== 8", id="two equals signs are exactly"),
    pytest.param(8.0, "== 8", id="integers and fractions are compared as numbers"),
    pytest.param(2.5, ">= 2.5", id="fractions are compared too"),
    pytest.param(8, "!= 9", id="not equal"),
    pytest.param(8, "<= 8", id="at most"),
    pytest.param(-1, "<= -0.5", id="negative numbers"),
    pytest.param(8, ">= 8 ignored", id="text after a number is ignored"),
    pytest.param("x86_64", "x86_64", id="plain text is equal"),
    pytest.param(8, "8", id="plain text equals a number written the same"),
    pytest.param(True, "true", id="a boolean matches its lower-case text"),
    pytest.param("two words", "two words", id="plain text may have spaces"),
    pytest.param("", "", id="empty text equals empty text"),
    pytest.param("arm", "s== arm", id="text equal"),
    pytest.param("arm", "s!= x86", id="text not equal"),
    pytest.param("abc", "s< abd", id="text before"),
    pytest.param("abc", "s<= abc", id="text before or equal"),
    pytest.param("b", "s> abc", id="text behind"),
    pytest.param("b", "s>= b", id="text behind or equal"),
    pytest.param("10", "s< 9", id="text is compared as text, even where it is digits"),
    pytest.param("sse avx", "<in> avx", id="a part of a text"),
    pytest.param(["sse", "avx"], "<in> avx", id="an item of a list"),
    pytest.param(["sse", "avx"], "<all-in> avx sse", id="all items of a list"),
    pytest.param("sse avx", "<all-in> avx <all-in> sse", id="all parts, the word repeated"),
    pytest.param("arm", "<or> x86 <or> arm", id="one of several"),
    pytest.param("arm", "<or> arm", id="one of one"),
    pytest.param(True, "<is> True", id="a boolean is true"),
    pytest.param("yes", "<is> true", id="yes is true"),
    pytest.param(False, "<is> false", id="a falsehood is false"),
    pytest.param("no", "<is> off", id="no is false"),
]
NOT_MET = [
    pytest.param(7, "= 8", id="less than at least"),
    pytest.param(9, "== 8", id="more than exactly"),
    pytest.param(8, "!= 8", id="equal is not unequal"),
    pytest.param(9, "<= 8", id="more than at most"),
    pytest.param("8", "== 8", id="text is no number"),
    pytest.param(True, ">= 1", id="a truth is no number"),
    pytest.param([8], ">= 1", id="a list is no number"),
    pytest.param("ARM", "arm", id="plain text is spelt exactly"),
    pytest.param("arm", "s== x86", id="text not the same"),
    pytest.param("arm", "s!= arm", id="the same text"),
    pytest.param("avx512", "s< avx", id="a longer text comes after its beginning"),
    pytest.param(["avx512"], "<in> avx", id="a part of an item is no item"),
    pytest.param(["avx"], "<all-in> avx sse", id="one item lacks"),
    pytest.param(8, "<all-in> 8", id="a number holds no items"),
    pytest.param("arm", "<or> x86 <or> ppc", id="none of several"),
    pytest.param(True, "<is> false", id="a truth is not false"),
    pytest.param({"deep": 1}, "= 1", id="a nested fact is no number"),
]
EVERY_OPERATOR = sorted(comparisons.WORDS)


@pytest.mark.parametrize(("value", "text"), MET)
def test_a_host_meets_a_demand(value: Any, text: str) -> None:
    assert is_met(value, text)


@pytest.mark.parametrize(("value", "text"), NOT_MET)
def test_a_host_does_not_meet_a_demand(value: Any, text: str) -> None:
    assert not is_met(value, text)


@pytest.mark.parametrize("word", [*EVERY_OPERATOR, ""])
@pytest.mark.parametrize("absent", [ABSENT, None])
def test_an_absent_capability_meets_no_demand(word: str, absent: Any) -> None:
    assert not is_met(absent, f"{word} 0")


@pytest.mark.parametrize("word", EVERY_OPERATOR)
def test_an_operator_without_an_operand_is_refused(word: str) -> None:
    for text in (word, f" {word}  "):
        with pytest.raises(Invalid, match="without an operand"):
            comparisons.parse("fact", text)


@pytest.mark.parametrize("text", ["<or> <or>", "<all-in> <all-in> <all-in>"])
def test_repeating_an_operator_is_no_operand(text: str) -> None:
    with pytest.raises(Invalid, match="without an operand"):
        comparisons.parse("fact", text)


@pytest.mark.parametrize("word", comparisons.NUMERIC)
@pytest.mark.parametrize(
    "operand", ["abc", "8x", "0x10", "--1", "1,5", "nan", "-inf", "1e999", "1_0"]
)
def test_a_numeric_operator_needs_a_number(word: str, operand: str) -> None:
    with pytest.raises(Invalid, match="which is not a number"):
        comparisons.parse("fact", f"{word} {operand}")


PARSED = [
    pytest.param(">= 8", Comparison("fact", ">=", ("8",)), id="an operator and a number"),
    pytest.param("  ==   8 ", Comparison("fact", "==", ("8",)), id="spaces do not matter"),
    pytest.param(
        "<or> a <or> b c", Comparison("fact", "<or>", ("a", "b", "c")), id="all that may be"
    ),
    pytest.param(">=8", Comparison("fact", PLAIN, (">=8",)), id="without a space it is text"),
    pytest.param("< 8", Comparison("fact", PLAIN, ("< 8",)), id="there is no smaller-than"),
    pytest.param(" spaced ", Comparison("fact", PLAIN, (" spaced ",)), id="text stays as it is"),
    pytest.param("", Comparison("fact", PLAIN, ("",)), id="nothing at all is empty text"),
]


@pytest.mark.parametrize(("text", "parsed"), PARSED)
def test_reading_an_extra_spec(text: str, parsed: Comparison) -> None:
    assert comparisons.parse("fact", text) == parsed


@pytest.mark.parametrize(
    "huge",
    [
        pytest.param(10**400, id="far above what a double holds"),
        pytest.param(-(10**400), id="far below what a double holds"),
    ],
)
def test_a_number_beyond_doubles_is_compared_nevertheless(huge: int) -> None:
    """One agent's odd value must not fail the boots of all requests that name this capability."""
    assert is_met(huge, ">= 8") == (huge > 0)
    assert is_met(huge, "<= 8") == (huge < 0)
    assert is_met(huge, "!= 8")


def test_equal_values_of_different_types_are_distinct() -> None:
    table = table_of(
        *(host(str(i), capabilities={"fact": v}) for i, v in enumerate([1, 1.0, True, "1"]))
    )
    numbers = comparisons.mask(table.capability("fact"), demand("fact", "== 1"), WHOLE)
    assert list(numbers) == [True, True, False, False]
    text = comparisons.mask(table.capability("fact"), demand("fact", "1"), WHOLE)
    assert list(text) == [True, False, False, True]


def test_nested_facts_have_dots_in_their_names() -> None:
    table = table_of(
        host("deep", capabilities={"cpu": {"arch": "arm"}}),
        host("flat", capabilities={"cpu.arch": "arm"}),
        host("none", capabilities={"cpu": "arm"}),
    )
    met = comparisons.mask(table.capability("cpu.arch"), demand("cpu.arch", "arm"), WHOLE)
    assert list(met) == [True, True, False]
