"""Tokens of zone parents whose users have long names or many roles, or send long queries."""

from __future__ import annotations

import pytest

from innkeeper.domain import hops
from tests.support import hop_tokens

CHAR = "\N{SLIGHTLY SMILING FACE}"
"""A character that takes four bytes."""
ROLES = [f"role-number-{number}" for number in range(32)]


@pytest.mark.parametrize("length", [0, 1000, 2000, 3000, 4000, 5000])
def test_a_token_is_accepted_however_much_it_has_to_say(length: int) -> None:
    owner = CHAR * hops.OWNER_CHARS_MAX
    token = hop_tokens.token(
        "GET",
        "/compute/v2.1/servers?name=" + "a" * length,
        b"",
        parent="p" * 64,
        password="secret",
        user=owner,
        project=owner,
        roles=ROLES,
        visited=[f"00000000-0000-4000-8000-{number:012}" for number in range(hops.VISITED_MAX)],
    )
    assert len(token) <= hops.LENGTH_MAX
    assert hops.name_in(token) == "p" * 64
