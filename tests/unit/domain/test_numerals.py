"""Numbers in texts: which texts are numbers."""

from __future__ import annotations

import pytest

from innkeeper.domain.numerals import number_of


@pytest.mark.parametrize(
    ("text", "number"), [("8", 8.0), (" -0.5 ", -0.5), ("+1e3", 1000.0), (".5", 0.5)]
)
def test_a_number_is_read(text: str, number: float) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    "text", ["", " ", "eight", "8x", "0x10", "1_0", "nan", "inf", "-Infinity", "1e999"]
)
def test_what_is_no_number_is_none(text: str) -> None:
    assert number_of(text) is None
