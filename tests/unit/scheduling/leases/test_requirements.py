"""The requirement language: valid texts, refused texts, and the hosts that match."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.facts import normalized
from innkeeper.domain.ids import ProviderId, ProviderUuid
from innkeeper.domain.leases import CalendarHost
from innkeeper.scheduling.expressions import LENGTH_MAX, PARTS_MAX
from innkeeper.scheduling.leases.requirements import (
    PARSED_KEPT,
    TOTAL_LENGTH_MAX,
    TOTAL_PARTS_MAX,
    Total,
    check,
    mask,
    parse,
    satisfied,
)
from innkeeper.snapshot.calendar import Calendar
from tests.tidy.tree import ROOT

PAGE = ROOT / "docs" / "reference" / "reservation.md"
EXAMPLE = re.compile(r"^\| `(\[.*\])` \| (yes|no) \|$", re.MULTILINE)


def calendar_of(*facts: dict[str, Any]) -> Calendar:
    calendar = Calendar()
    hosts = [
        CalendarHost(ProviderId(row), row, ProviderUuid(str(row)), None, normalized(each), {})
        for row, each in enumerate(facts)
    ]
    calendar.replace_all(hosts, [])
    return calendar


FACTS = (
    {"vcpus": 8, "arch": "x86_64", "gpus": "10", "driver": "1.10.2", "ssd": True},
    {"vcpus": 16, "arch": "aarch64", "gpus": "9", "driver": "1.9.10", "ssd": "false"},
    {"vcpus": 32, "arch": "x86_64", "serial": "00017", "cpu_info": {"topology": {"cores": "4"}}},
)


def matching(query: Any) -> list[int]:
    expression = parse(query if isinstance(query, str) else json.dumps(query))
    assert expression is not None
    return [row for row, each in enumerate(mask(expression, calendar_of(*FACTS))) if each]


@pytest.mark.parametrize("text", [None, "", "  ", "None", "none", "null", "[]", "{}"])
def test_there_may_be_no_requirement(text: str | None) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (["==", "$arch", "x86_64"], [0, 2]),
        (["=", "$arch", "x86_64"], [0, 2]),
        (["!=", "$arch", "x86_64"], [1]),
        ([">=", "$vcpus", "16"], [1, 2]),
        ([">=", "$vcpus", 16], [1, 2]),
        (["<", "$vcpus", "9"], [0]),
        ([">", "$gpus", "9"], [0]),
        ([">=", "$gpus", 9], [0, 1]),
        (["==", "$gpus", "10.0"], [0]),
        ([">=", "$driver", "1.10.0"], [0]),
        (["<", "$driver", "1.9.11"], [1]),
        (["==", "$driver", "1.09.10"], [1]),
        (["in", "$arch", "aarch64", "riscv64"], [1]),
        (["in", "$vcpus", "8", 32], [0, 2]),
        (["not", ["==", "$arch", "aarch64"]], [0, 2]),
        (["==", "$ssd", "true"], [0]),
        (["==", "$ssd", True], [0]),
        (["==", "$ssd", False], [1]),
        (["==", "$ssd", "True"], []),
        (["==", "$serial", 17], [2]),
        (["==", "$cpu_info.topology.cores", "4"], [2]),
        (["<=", "$arch", "b"], [1]),
    ],
)
def test_values_are_compared_by_what_they_mean(query: Any, rows: list[int]) -> None:
    assert matching(query) == rows


@pytest.mark.parametrize("sign", ["==", "!=", "<", ">=", "in"])
def test_a_host_without_the_fact_never_matches(sign: str) -> None:
    assert 2 not in matching([sign, "$gpus", "1"])
    assert 2 not in matching(["not", [sign, "$gpus", "1"]])


def test_conditions_are_nested_to_any_depth() -> None:
    deep: Any = ["==", "$arch", "x86_64"]
    for _ in range(6):
        deep = ["and", deep, ["or", ["<", "$vcpus", 10], ["==", "$vcpus", 16]]]
    assert matching(deep) == [0]
    assert matching(["or", [">", "$gpus", "9"], ["and", deep, deep], [">", "$vcpus", 20]]) == [0, 2]


def test_versions_have_any_number_of_parts() -> None:
    calendar = calendar_of({"kernel": "5.4.0.9"}, {"kernel": "5.4.0.10"}, {"kernel": "5.4.0.0.1"})
    for sign, rows in (("<", [2]), ("==", [0]), (">", [1])):
        expression = parse(json.dumps([sign, "$kernel", "5.4.0.09"]))
        assert expression is not None
        assert mask(expression, calendar).nonzero()[0].tolist() == rows


def test_large_numbers_that_differ_are_not_equal() -> None:
    calendar = calendar_of({"serial": "9007199254740993"}, {"serial": 9007199254740992000})
    for value, rows in (("9007199254740992", []), ("9007199254740993", [0])):
        expression = parse(json.dumps(["==", "$serial", value]))
        assert expression is not None
        assert mask(expression, calendar).nonzero()[0].tolist() == rows


def test_facts_are_normalized_at_any_depth() -> None:
    given = {"a": {"b": ["7", "x", True]}, "c": None, "d": 1.5}
    assert normalized(given) == {"a": {"b": [7.0, "x", "true"]}, "c": None, "d": 1.5}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("vcpus > 4", "it is not valid JSON"),
        ('["=~", "$arch", "x"]', "is not an operator"),
        ('["==", "arch", "x86_64"]', "names no property"),
        ('["==", "$arch"]', "takes at least 2 arguments"),
        ('["==", "$", "x"]', "a variable needs a name"),
        ('["and"]', "takes at least 1 arguments"),
        ('["and", "$ssd"]', "are lists"),
        ('["not", true]', "are lists"),
        ('"$arch"', "a query is a list"),
        ('{"arch": "x86_64"}', "a query is a list"),
        ('["==", "$arch", ["x86_64"]]', "an operand must be"),
        ("[" * 9000, "it is not valid JSON"),
        ('["not", ' * 17 + '["==", "$a", "1"]' + "]" * 17, "nested deeper"),
    ],
)
def test_malformed_requirements_are_refused(text: str, why: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse(text)
    assert refused.value.message.startswith(f"Malformed requirements {text[:200]}: ")
    assert why in refused.value.message


def test_unknown_properties_are_refused() -> None:
    calendar = calendar_of(*FACTS)
    for known in ("$arch", "$cpu_info.topology", "$hypervisor_hostname"):
        expression = parse(json.dumps(["==", known, "x"]))
        assert expression is not None
        check(expression, calendar)
    for name in ("colour", "cpu_info.colour", "arch.colour"):
        expression = parse(f'["or", ["==", "$arch", "x"], ["==", "${name}", "red"]]')
        assert expression is not None
        with pytest.raises(Invalid, match=rf"Malformed requirements: .* {name}"):
            check(expression, calendar)


def test_all_requirements_must_be_satisfied() -> None:
    calendar = calendar_of(*FACTS)
    assert satisfied(("", '["==", "$arch", "x86_64"]'), calendar).tolist() == [True, False, True]
    both = ('["==", "$arch", "x86_64"]', '[">", "$vcpus", 8]')
    assert satisfied(both, calendar).tolist() == [False, False, True]
    assert satisfied((), calendar).all()


def test_a_text_is_parsed_once() -> None:
    texts = [json.dumps(["==", "$vcpus", number]) for number in range(PARSED_KEPT)]
    first = [parse(each) for each in texts]
    assert all(parse(each) is seen for each, seen in zip(texts, first, strict=True))


def many_parts(number: int) -> str:
    """Return, for each number, another requirement with the maximum number of parts."""
    return json.dumps(["==", "$vcpus", *range(number, number + PARTS_MAX - 2)])


def test_all_requirements_together_have_a_limit_of_parts() -> None:
    total = Total()
    for number in range(TOTAL_PARTS_MAX // PARTS_MAX):
        total.add([many_parts(number), many_parts(number)])
        total.add([many_parts(number)])
    with pytest.raises(Invalid, match="more than 1000 operators, values and properties in total"):
        total.add([json.dumps(["==", "$vcpus", 1])])


def test_all_requirements_together_have_a_limit_of_characters() -> None:
    total = Total()
    for number in range(TOTAL_LENGTH_MAX // LENGTH_MAX):
        total.add([json.dumps(["==", "$arch", str(number)]).ljust(LENGTH_MAX)])
    with pytest.raises(Invalid, match="more than 65536 characters in total"):
        total.add([json.dumps(["==", "$arch", "x"])])


def test_the_examples_of_the_reference_match_as_it_says() -> None:
    """The host has the facts given on the page. Another host has the property gpu."""
    host = {"vcpus": 32, "rack": "r2", "firmware": "1.10.2", "traits": ["HW_CPU_X86_AVX2"]}
    calendar = calendar_of(host, {"gpu": "a100"})
    examples = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    assert len(examples) == 8
    for text, answer in examples:
        expression = parse(text)
        assert expression is not None
        check(expression, calendar)
        assert mask(expression, calendar)[0] == (answer == "yes"), text
