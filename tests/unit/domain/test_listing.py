"""The small language of name patterns."""

from __future__ import annotations

import pytest

from innkeeper.domain.listing import WILDCARDS_MAX, Pattern, parse_pattern


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("web", Pattern((("w", "e", "b"),))),
        ("^web", Pattern((("w", "e", "b"),), starts=True)),
        ("web$", Pattern((("w", "e", "b"),), ends=True)),
        ("^a.*b$", Pattern((("a",), ("b",)), starts=True, ends=True)),
        ("a.b", Pattern((("a", None, "b"),))),
        (r"a\.b", Pattern((("a", ".", "b"),))),
        (r"5\$", Pattern((("5", "$"),))),
        ("(a|b)+", Pattern((("(", "a", "|", "b", ")", "+"),))),
        ("", Pattern(((),))),
        ("^", Pattern(((),), starts=True)),
        ("$", Pattern(((),), ends=True)),
        ("\\", Pattern((("\\",),))),
        (".*", Pattern(((), ()))),
    ],
)
def test_patterns(text: str, pattern: Pattern) -> None:
    assert parse_pattern(text) == pattern


def test_a_pattern_with_many_gaps_is_rejected() -> None:
    assert parse_pattern("a.*" * WILDCARDS_MAX) is not None
    assert parse_pattern("a.*" * (WILDCARDS_MAX + 1)) is None
