"""Numbers in texts: which texts are numbers."""

from __future__ import annotations

import pytest

from innkeeper.domain.numerals import is_boundless, number_of, whole_of


@pytest.mark.parametrize(
    ("text", "number"), [("8", 8.0), (" -0.5 ", -0.5), ("+1e3", 1000.0), (".5", 0.5)]
)
def test_a_number_is_read(text: str, number: float) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    "text", ["", " ", "eight", "8x", "0x10", "1_0", "nan", "inf", "-Infinity", "1e999", "\u0663"]
)
def test_a_text_that_is_not_a_number_is_rejected(text: str) -> None:
    assert number_of(text) is None


@pytest.mark.parametrize(
    ("text", "number"), [("8", 8), ("-3", -3), ("+0", 0), ("9" * 30, 10**30 - 1)]
)
def test_a_whole_number_is_read(text: str, number: int) -> None:
    assert whole_of(text) == number


@pytest.mark.parametrize("text", ["", "1.0", "1e3", "0x10", "1_0", "nan", "\u0663", "9" * 5000])
def test_a_text_that_is_not_an_integer_is_rejected(text: str) -> None:
    assert whole_of(text) is None


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("nan", True), ("-INF", True), ("1e999", True), ("8", False), ("info", False)],
)
def test_what_is_beyond_all_bounds(text: str, is_one: bool) -> None:
    assert is_boundless(text) == is_one
