"""The JSON filter's language: valid queries, refused queries, and the hosts that match."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import product
from operator import eq, ge, lt
from typing import Any

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import Rules
from innkeeper.scheduling import expressions
from innkeeper.scheduling.filters import json_query
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.scheduling.weighers.free_amounts import FREE_MEMORY
from innkeeper.snapshot.columns import HostTable
from tests.support.host_facts import passed_by, with_servers
from tests.support.tables import NOW_S, asking, host, plan, table_of

# Ten hosts; host n has n times the amounts. The examples are those of OpenStack's first distributed
# scheduler.
TEN = tuple(host(str(n), memory_mb=10 * n, disk_gb=100 * n) for n in range(1, 11))
ALL_TEN = set(range(1, 11))
EXAMPLES = [
    pytest.param(
        [
            "or",
            ["and", ["<", "$free_memory_mb", 30], ["<", "$free_disk_gb", 300]],
            ["and", [">", "$free_memory_mb", 70], [">", "$free_disk_gb", 700]],
        ],
        {1, 2, 8, 9, 10},
        id="the least and the greatest",
    ),
    pytest.param(["not", ["=", "$free_memory_mb", 30]], ALL_TEN - {3}, id="all but one"),
    pytest.param(
        ["in", "$free_memory_mb", 20, 40, 60, 80, 100], {2, 4, 6, 8, 10}, id="the even ones"
    ),
    pytest.param(
        ["and", [">=", "$free_ram_mb", 50], [">=", "$free_disk_mb", 500 * 1024]],
        {5, 6, 7, 8, 9, 10},
        id="room for a flavor",
    ),
    pytest.param([], ALL_TEN, id="an empty list passes"),
    pytest.param({}, ALL_TEN, id="an empty object passes"),
    pytest.param(["=", "$missing", 2], set(), id="an unknown variable matches nothing"),
    pytest.param(["=", "$missing", 2, 2], set(), id="an unknown variable is not ignored"),
    pytest.param(["not", ["=", "$missing", 2]], set(), id="the negation matches nothing either"),
    pytest.param(["!=", "$missing", 2], set(), id="inequality matches nothing either"),
    pytest.param(
        ["=", "$missing", "$missing"], set(), id="equality with itself matches nothing either"
    ),
    pytest.param(
        ["or", ["=", "$missing", 2], [">", "$free_memory_mb", 90]],
        {10},
        id="true for any value of the unknown is true",
    ),
    pytest.param(
        ["and", ["=", "$missing", 2], [">", "$free_memory_mb", 90]],
        set(),
        id="and with an unknown matches nothing",
    ),
    pytest.param(
        ["not", ["and", ["=", "$missing", 2], [">", "$free_memory_mb", 90]]],
        ALL_TEN - {10},
        id="false for any value of the unknown is false",
    ),
]


@pytest.mark.parametrize(("query", "left"), EXAMPLES)
def test_json_filter_on_hosts_of_rising_size(query: Any, left: set[int]) -> None:
    spec = asking(query=expressions.parse(json.dumps(query)))
    assert passed_by(json_query, table_of(*TEN), spec) == {str(n) for n in left}


FACTS = {
    "nil": 0,
    "empty": "",
    "no": False,
    "yes": True,
    "arch": "x86_64",
    "count": 4,
    "flags": ["avx", "sse", 7, True],
    "cpu": {"cores": 8, "model": "b"},
    "model": "c",
}
KNOWN = (
    host(
        "h1",
        vcpus=3,
        memory_mb=1000,
        disk_gb=50,
        used={"VCPU": 1, "MEMORY_MB": 24, "DISK_GB": 0},
        zone="north",
        traits=("HW_CPU_X86_AVX",),
        capabilities=FACTS,
    ),
    host("other", vcpus=0, memory_mb=0, disk_gb=0, zone="south"),
)


def holds(query: Any, table: HostTable | None = None) -> bool:
    """Whether a query matches the first host, all of whose values are known."""
    there = table or with_servers(table_of(*KNOWN), {"h1": {"p": 2}}, {"h1": 1})
    spec = asking(query=expressions.parse(json.dumps(query)))
    return "h1" in passed_by(json_query, there, spec)


HOLDS: list[Any] = [
    ["=", "$free_memory_mb", 1000],
    ["=", "$used_memory_mb", 24],
    ["=", "$total_memory_mb", 1024],
    ["=", "$total_usable_ram_mb", 1024],
    ["=", "$free_disk_gb", 50],
    ["=", "$free_disk_mb", 51200],
    ["=", "$used_disk_gb", 0],
    ["=", "$total_disk_gb", 50, "$total_usable_disk_gb"],
    ["=", "$free_vcpus", 3],
    ["=", "$used_vcpus", 1, "$vcpus_used"],
    ["=", "$total_vcpus", 4, "$vcpus_total"],
    ["=", "$servers", 2, "$num_instances"],
    ["=", "$busy_servers", 1, "$num_io_ops"],
    ["=", "$host", "h1"],
    ["=", "h1", "$hypervisor_hostname"],
    ["!=", "$host", "h2"],
    ["in", "$host", "h0", "h1"],
    ["!=", "$host", 1],
    ["not", ["=", "$host", True]],
    ["=", "$availability_zone", "north"],
    ["<", "$availability_zone", "south"],
    ["=", "$traits.HW_CPU_X86_AVX", True],
    ["and", "$traits.HW_CPU_X86_AVX", ["not", "$traits.CUSTOM_NONE"]],
    ["=", "$capabilities.arch", "x86_64"],
    ["=", "$capabilities.cpu.cores", 8],
    ["<", 4, "$capabilities.cpu.cores", 9],
    [">", "$capabilities.cpu.cores", "$capabilities.count"],
    ["<", "$capabilities.cpu.model", "$capabilities.model"],
    ["!=", "$capabilities.cpu.model", "$capabilities.model"],
    # A value that is 0, empty or false is still a value.
    ["=", "$capabilities.nil", 0],
    ["=", "$capabilities.empty", ""],
    ["=", "$capabilities.no", False],
    ["not", "$capabilities.no"],
    ["and", "$capabilities.yes", True],
    ["or", False, "$capabilities.yes"],
    # Values of different types are never equal.
    ["!=", "$capabilities.yes", 1],
    ["!=", "$capabilities.count", "4"],
    ["!=", "$capabilities.flags", "avx"],
    ["not", ["=", "$capabilities.nil", False]],
    # A list matches by its items.
    ["in", "avx", "$capabilities.flags"],
    ["in", 7, "$capabilities.flags"],
    ["in", True, "$capabilities.flags"],
    ["not", ["in", 1, "$capabilities.flags"]],
    ["not", ["in", "mmx", "$capabilities.flags"]],
    ["in", "x86_64", "$capabilities.flags", "$capabilities.arch"],
    # Every other argument is compared with the first.
    ["<", 1, 2, 3],
    ["<", 1, 3, 2],
    ["=", 1, 1.0],
    ["<=", "a", "a", "b"],
    [">=", 3, 3, 2],
    ["=", True, True],
    ["and", []],
    ["or", {}, False],
]


@pytest.mark.parametrize("query", HOLDS, ids=json.dumps)
def test_a_query_holds_and_its_contrary_does_not(query: Any) -> None:
    assert holds(query)
    assert not holds(["not", query])


FAILS: list[Any] = [
    ["=", "$free_memory_mb", 1001],
    ["<", 1, 2, 1],
    ["=", "a", "A"],
    ["=", "$traits.CUSTOM_NONE", True],
    ["in", "h1", "$availability_zone"],
    ["not", True],
    ["and", True, False],
]


@pytest.mark.parametrize("query", FAILS, ids=json.dumps)
def test_a_query_fails_and_its_contrary_holds(query: Any) -> None:
    assert not holds(query)
    assert holds(["not", query])


UNKNOWN: list[Any] = [
    ["=", "$capabilities.gpu", 1],
    ["<", "$capabilities.arch", 5],
    ["<", "$capabilities.no", "$capabilities.yes"],
    ["<", True, False],
    ["<", "$host", "z"],
    ["=", "$host", "$hypervisor_hostname"],
    ["in", "$availability_zone", "$capabilities.flags"],
    ["and", "$capabilities.count"],
    ["and", "$capabilities.arch"],
    ["and", "$host"],
    ["=", "$free", 1],
    ["=", "$capabilities", 1],
    ["=", "$capabilities.", 1],
    ["=", "$names", 1],
    ["=", "$__class__", 1],
    ["=", "$free.MEMORY_MB", 1],
]


@pytest.mark.parametrize("query", UNKNOWN, ids=json.dumps)
def test_an_unknown_value_makes_neither_a_query_nor_its_negation_true(query: Any) -> None:
    assert not holds(query)
    assert not holds(["not", query])


def test_a_query_is_evaluated_after_every_pick() -> None:
    query = expressions.read(["and", ["<", "$servers", 2], [">=", "$free_memory_mb", 3000]])
    table = with_servers(table_of(host("a", memory_mb=9000), host("b", memory_mb=4000)), {})
    pipeline = Pipeline([json_query], [(FREE_MEMORY, 1.0)])
    made = plan(pipeline, table, asking(1, 1500, 0, count=9, query=query))
    assert [entry.host for entry in made.entries] == ["a", "a", "b"]


def test_servers_are_known_only_where_they_are_counted() -> None:
    table = table_of(*KNOWN)
    assert not holds([">=", "$servers", 0], table)
    assert not holds([">=", "$num_io_ops", 0], table)


def test_capabilities_that_are_too_old_are_unknown() -> None:
    table = table_of(*KNOWN)
    for name in ("nil", "arch", "yes"):
        query = expressions.read(["=", f"$capabilities.{name}", FACTS[name]])
        for seen_s, left in ((NOW_S - 180, {"h1"}), (NOW_S - 181, set())):
            table.set_facts_seen(table.index_by_name["h1"], seen_s)
            spec = asking(query=query, rules=Rules(capabilities_max_age_s=180))
            assert passed_by(json_query, table, spec) == left


def nested(depth: int) -> str:
    return '["not", ' * depth + "true" + "]" * depth


REFUSED = [
    pytest.param("", id="nothing"),
    pytest.param("not json", id="no JSON"),
    pytest.param("[" * 10_000, id="brackets without end"),
    pytest.param("[" * 900 + "]" * 900, id="brackets and nothing else"),
    pytest.param('["="' + " " * 20_000 + ",1,1]", id="very long"),
    pytest.param("7", id="a number"),
    pytest.param('"x"', id="a text"),
    pytest.param("null", id="nothing at all"),
    pytest.param('{"=": [1, 1]}', id="an object"),
    pytest.param("[[]]", id="no operator"),
    pytest.param('[["=", 1, 1]]', id="a query in place of an operator"),
    pytest.param('["~", 1, 1]', id="an unknown operator"),
    pytest.param('["==", 1, 1]', id="another language's operator"),
    pytest.param('["AND", true]', id="in upper case"),
    pytest.param('["\\ud800", 1]', id="half a character"),
    pytest.param('["="]', id="a comparison of nothing"),
    pytest.param('["=", 1]', id="a comparison with nothing"),
    pytest.param('["in", 1]', id="a place in nothing"),
    pytest.param('["and"]', id="and nothing"),
    pytest.param('["or"]', id="or nothing"),
    pytest.param('["not"]', id="not nothing"),
    pytest.param('["not", true, false]', id="not two"),
    pytest.param('["and", 1]', id="a number that is no query"),
    pytest.param('["and", "x"]', id="a text that is no query"),
    pytest.param('["and", null]', id="nothing that is no query"),
    pytest.param('["and", "$"]', id="a variable without a name in a query"),
    pytest.param('["=", 1, null]', id="a comparison with null"),
    pytest.param('["=", 1, ["=", 1, 1]]', id="a comparison with a query"),
    pytest.param('["=", 1, []]', id="a comparison with a list"),
    pytest.param('["=", 1, {}]', id="a comparison with an object"),
    pytest.param('["=", 1, "$"]', id="a variable without a name"),
    pytest.param('["=", 1, 1e999]', id="an endless number"),
    pytest.param('["=", 1, NaN]', id="no number"),
    pytest.param('["=", 1, -Infinity]', id="an endless negative number"),
    pytest.param(f'["=", 1, {2**53 + 1}]', id="a number that doubles take for its neighbour"),
    pytest.param(f'["=", 1, -{2**53 + 1}]', id="a negative one"),
    pytest.param(f'["=", 1, {"9" * 400}]', id="a number beyond all others"),
    pytest.param(f'["=", 1, {"9" * 5000}]', id="a number with very many digits"),
    pytest.param(nested(expressions.DEPTH_MAX + 1), id="too deep"),
    pytest.param(json.dumps(["in", *range(expressions.PARTS_MAX)]), id="too much"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_query_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="query"):
        expressions.parse(text)


@pytest.mark.parametrize("query", [*HOLDS, *FAILS, *UNKNOWN], ids=json.dumps)
def test_a_parsed_query_parses_to_itself(query: Any) -> None:
    parsed = expressions.parse(json.dumps(query))
    hash(parsed)
    assert expressions.read(parsed) == parsed
    assert expressions.read(json.loads(json.dumps(parsed))) == parsed


def test_a_list_may_not_say_more_than_a_text() -> None:
    long = "x" * expressions.LENGTH_MAX
    with pytest.raises(Invalid, match="query"):
        expressions.read(["=", "$host", long])
    with pytest.raises(Invalid, match="query"):
        expressions.read(["or", *[["=", "$host", long[:300]]] * 60])


def test_the_deepest_and_the_longest_query_is_answered() -> None:
    assert expressions.parse(nested(expressions.DEPTH_MAX))
    longest = ["=", "$host", "x" * (expressions.LENGTH_MAX - len('["=","$host",""]'))]
    text = json.dumps(longest, separators=(",", ":"))
    assert len(text) == expressions.LENGTH_MAX
    assert expressions.read(expressions.parse(text)) == tuple(longest)
    assert holds(["<=", "$capabilities.nil", 2**53, float(2**53)])
    assert holds(["in", "$free_vcpus", *range(expressions.PARTS_MAX - 2)])


@pytest.mark.parametrize("seed", range(4))
def test_columns_are_compared_row_by_row(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - must be repeatable, not secret
    values: list[Any] = [None, 1, 2.5, True, False, "", "a", "b", "c", ["a", 1, True], {}]
    facts = [{"x": dice.choice(values), "y": dice.choice(values)} for _ in range(200)]
    table = table_of(*(host(str(n), capabilities=each) for n, each in enumerate(facts)))
    signs: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<": lt, ">=": ge}
    for sign, other in product(signs, ["$capabilities.y", "b", True, 2, 2.5]):
        spec = asking(query=expressions.read([sign, "$capabilities.x", other]))
        rights = [f["y"] if other == "$capabilities.y" else other for f in facts]
        expected = {
            str(n)
            for n, (fact, right) in enumerate(zip(facts, rights, strict=True))
            if _kind(fact["x"]) == _kind(right) in ("number", "text", sign == "=" and "truth")
            and signs[sign](fact["x"], right)
        }
        assert passed_by(json_query, table, spec) == expected


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    return {int: "number", float: "number", str: "text"}.get(type(value), "none")


def test_json_filter_missing() -> None:
    query = ["or", ["=", "$capabilities.arch", "x"], ["=", "$\ud800\n", "$host", "$free_vcpus"]]
    told = json_query.missing(table_of(*KNOWN), asking(query=expressions.read(query)))
    assert told == (
        "'capabilities.arch' is known for 1 hosts; 'free_vcpus' is known for 2 hosts; "
        "'host' is known for 2 hosts; '\\ud800\\n' is known for 0 hosts"
    )
    assert json_query.missing(table_of(*KNOWN), asking()) == ("the query has no variables")


def test_json_filter_lacks() -> None:
    words = ["$capabilities.arch", "$free_vcpus", "$capabilities.cpu.cores", "$traits.X", "$no"]
    spec = asking(query=expressions.read(["in", "$host", *words]))
    table = table_of(*KNOWN)
    assert [json_query.lacks(table, spec, table.index_by_name[each.name]) for each in KNOWN] == [
        [
            "'capabilities.arch' is 'x86_64'",
            "'capabilities.cpu.cores' is 8",
            "'free_vcpus' is 3",
            "'no' is not known",
            "'traits.X' is False",
        ],
        [
            "'capabilities.arch' is not known",
            "'capabilities.cpu.cores' is not known",
            "'free_vcpus' is 0",
            "'no' is not known",
            "'traits.X' is False",
        ],
    ]
