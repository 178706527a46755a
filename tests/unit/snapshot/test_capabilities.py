"""Capabilities by name: the known ones, and unknown ones, which use no memory."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import numpy as np
import pytest

from innkeeper.domain.ids import HostIndex, ProviderId
from innkeeper.snapshot.capabilities import CapabilityColumn, column_of, lookup, names_of
from innkeeper.snapshot.vocabulary import NO_CODE
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
def test_an_unreported_name_has_no_values(name: str) -> None:
    column = table_of(host("a", capabilities=FACTS), host("b")).capability(name)
    assert column.codes.tolist() == [NO_CODE, NO_CODE]
    assert np.isnan(column.numbers).all()
    assert column.values == []


def test_later_reports_are_found() -> None:
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


VALUES: list[Any] = [None, 1, 1.0, True, "1", "x", ["x"], {"deep": "x"}, 10**400, -(10**400)]


def shown(column: CapabilityColumn) -> list[Any]:
    """The value of each host in a column."""
    known = [repr(column.values[code]) if code >= 0 else None for code in column.codes]
    return [*known, *map(repr, column.numbers.tolist())]


@pytest.mark.parametrize("seed", range(6))
def test_columns_show_what_became_of_facts(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - must be repeatable, not secret
    table = table_of(*(host(f"h{n}") for n in range(30)))
    for step in range(200):
        facts = {"a": dice.choice(VALUES), "b": {"c": dice.choice(VALUES), "n": step}}
        table.set_capabilities(HostIndex(dice.randrange(table.host_count)), facts)
        if dice.random() < 0.02:
            table.remove_row(ProviderId(int(table.provider_ids[0])))
        name = dice.choice(["a", "b", "b.c", "b.n"])
        if dice.random() < 0.7:
            fresh = column_of([lookup(each, name) for each in table.all_capabilities()])
            assert shown(table.capability(name)) == shown(fresh)


def test_one_host_with_new_facts_leaves_the_other_hosts_alone() -> None:
    table = table_of(*(host(f"h{n}", capabilities={"n": n, "m": n}) for n in range(100)))
    first = table.capability("n")
    table.set_capabilities(HostIndex(7), {"n": 700})
    assert table.capability("n") is first
    assert (first.numbers[7], first.numbers[8]) == (700, 8)
    assert first.values[first.codes[7]] == 700
    table.set_capabilities(HostIndex(7), {})
    assert table.capability("n") is first
    assert first.codes[7] == NO_CODE


def test_values_that_no_host_has_any_more_do_not_pile_up() -> None:
    table = table_of(*(host(f"h{n}") for n in range(100)))
    for number in range(5000):
        table.set_capabilities(HostIndex(number % 100), {"load": number, "name": f"x{number}"})
        # One capability is requested always, the other rarely.
        assert len(table.capability("load").values) <= 300
        if number % 7 == 0:
            assert len(table.capability("name").values) <= 300
    assert sorted(table.capability("load").numbers.tolist()) == [*range(4900, 5000)]
