"""The names that users may choose."""

from __future__ import annotations

import pytest

from innkeeper.domain.names import NAME_MAX, is_name


@pytest.mark.parametrize("text", ["a", "two words", "Größe", "x" * NAME_MAX])
def test_printable_texts_are_names(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize(
    "text", ["", " ", " a", "a ", "a\n", "a\nb", "a\x7fb", "x" * (NAME_MAX + 1)]
)
def test_other_texts_are_no_names(text: str) -> None:
    assert not is_name(text)
