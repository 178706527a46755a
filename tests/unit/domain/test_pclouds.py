"""Generated names of pclouds' hosts."""

from __future__ import annotations

import re

import pytest

from innkeeper.domain.names import NAME_MAX, is_name
from innkeeper.domain.pclouds import AUTO_MARK, beginning_of_host_names, is_host_name
from innkeeper.entrypoints.api.patterns import HOST_PATTERN
from innkeeper.systems.pclouds.hosts import NAME_KEPT

HOSTS_MAX = 9_999_999
"""More hosts than any pcloud has."""


@pytest.mark.parametrize(
    ("pcloud", "begins"),
    [
        ("ours", "ours"),
        ("rack1-07", "rack1-07"),
        ("two words", "two words"),
        ("a:b/c", "a-b-c"),
        ("..", ".."),
        (":", "-"),
        ("Größe", "Größe"),
        ("x" * NAME_MAX, "x" * NAME_MAX),
        ("/" * NAME_MAX, "-" * NAME_MAX),
        ("a " * (NAME_MAX // 2) + "b", "a " * (NAME_MAX // 2) + "b"),
    ],
)
def test_names_are_made_of_the_pclouds_and_are_no_machines(pcloud: str, begins: str) -> None:
    assert is_name(pcloud)
    assert beginning_of_host_names(pcloud) == begins
    for number in (1, HOSTS_MAX):
        name = f"{begins[:NAME_KEPT]}{AUTO_MARK}{number}"
        assert is_host_name(name)
        assert re.match(HOST_PATTERN, name) is None
