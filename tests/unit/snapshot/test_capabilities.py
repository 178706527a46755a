"""Capabilities by their names: which there are, and that made-up ones leave nothing behind."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from innkeeper.snapshot.capabilities import NO_CODE, lookup, names_of
from tests.support.tables import host, table_of

FACTS: dict[str, Any] = {
    "arch": "x86_64",
    "cpu": {"cores": 8, "cache": {"l3_mb": 32}, "none": {}},
    "a.b": 1,
    "flags": ["avx", {"inside": 1}],
}
NAMES = {"arch", "cpu", "cpu.cores", "cpu.cache", "cpu.cache.l3_mb", "cpu.none", "a.b", "flags"}


def test_names_are_all_under_which_something_is_found() -> None:
    assert names_of(FACTS) == NAMES
    assert all(lookup(FACTS, name) is not None for name in NAMES)
    assert names_of({}) == set()


def test_facts_that_are_nested_very_deeply_have_names() -> None:
    facts: dict[str, Any] = {}
    for _ in range(2000):
        facts = {"a": facts}
    assert len(names_of(facts)) == 2000


@pytest.mark.parametrize("name", ["", "x", "arch.x", "cpu.x", "flags.inside", "a"])
def test_a_name_that_nobody_told_has_nothing(name: str) -> None:
    column = table_of(host("a", capabilities=FACTS), host("b")).capability(name)
    assert column.codes.tolist() == [NO_CODE, NO_CODE]
    assert np.isnan(column.numbers).all()
    assert column.values == []


def test_what_is_told_later_is_found() -> None:
    table = table_of(host("a"), host("b"))
    assert table.capability("cpu.cores").values == []
    table.set_capabilities(table.index_by_name["b"], FACTS)
    assert table.capability("cpu.cores").numbers.tolist()[1] == 8


def test_made_up_names_are_not_remembered() -> None:
    table = table_of(*(host(f"h{n}", capabilities=FACTS) for n in range(100)))
    table.capability("arch")
    tracemalloc.start()
    try:
        for number in range(1000):
            table.capability(f"made-up-{number}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Each column of a hundred hosts takes more than a kilobyte.
    assert kept < 100_000
