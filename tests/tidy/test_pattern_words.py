"""The Compute API describes the expected format of a text in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from innkeeper.entrypoints.api.microversions import passage
from innkeeper.entrypoints.api.patterns import WORDS
from innkeeper.entrypoints.api.tables import APIS

COMPUTE = APIS["compute"]
SIGNS = re.compile(r"[\[\](){}^$|\\]")
"""Characters of a regular expression that a sentence does not have."""


def patterns_of(schema: Any) -> Iterator[str]:
    """Every pattern in a schema, of texts and of keys."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        named = schema.get("patternProperties")
        if isinstance(named, Mapping):
            yield from (each for each in named if isinstance(each, str))
        schema = tuple(schema.values())
    if isinstance(schema, list | tuple):
        for each in schema:
            yield from patterns_of(each)


def schemas() -> Iterator[tuple[str, Any]]:
    """The schemas of all routes at all versions, each with its source."""
    table = COMPUTE.versions
    assert table is not None
    versions = [table.oldest, *(step.version for step in table.steps)]
    for route in COMPUTE.routes:
        for version in versions:
            way = passage(table.after(version), route.method, route.path, route.body, route.query)
            for schema in (way.body, way.query):
                yield f"{route.method} {route.path} at {version}", schema


def test_every_pattern_has_words() -> None:
    used = {(place, each) for place, schema in schemas() for each in patterns_of(schema)}
    assert used, "a schema of this API has a pattern"
    assert sorted(each for each in used if each[1] not in WORDS) == []
    assert set(WORDS) == {each for _, each in used}, "words are of patterns that there are"


@pytest.mark.parametrize("pattern", sorted(WORDS))
def test_words_are_sentences(pattern: str) -> None:
    words = WORDS[pattern]
    for sentence in re.split(r"(?<=\.) ", words):
        assert re.fullmatch(r"(It|After that it) must .+\.", sentence), sentence
    assert SIGNS.search(words) is None, words
