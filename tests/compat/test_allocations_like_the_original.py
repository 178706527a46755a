"""Allocations and usages: like the original's, in the format of each version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.comparing import Ask, Pair, at, both, uuid

pytestmark = pytest.mark.slow
PROVIDERS = "/resource_providers"
BIG, FULL, NOWHERE = uuid(1), uuid(2), uuid(99999)
CHANGED_IN = (0, 7, 8, 9, 11, 12, 13, 15, 23, 27, 28, 33, 34, 37, 38, 39)
"""The minor versions that change the format, and the versions just before them."""
OWNER = {"project_id": "p", "user_id": "u"}
HAVE = {
    "VCPU": {"total": 1000},
    "DISK_GB": {"total": 1000, "min_unit": 10, "max_unit": 50, "step_size": 5},
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with both(tmp_path_factory.mktemp("allocations")) as made:
        first = {"VCPU": {"total": 1000, "reserved": 999}}
        made.agree(
            [
                Ask("POST", PROVIDERS, {"name": "big", "uuid": BIG}),
                Ask("POST", PROVIDERS, {"name": "full", "uuid": FULL}),
                *(
                    Ask(
                        "PUT",
                        f"{PROVIDERS}/{one}/inventories",
                        {"resource_provider_generation": 0, "inventories": inventories},
                    )
                    for one, inventories in ((BIG, HAVE), (FULL, first))
                ),
            ]
        )
        yield made


def held(amounts: dict[str, Any], of: str = BIG) -> dict[str, Any]:
    return {of: {"resources": amounts}}


def listed(amounts: dict[str, Any], of: str = BIG) -> dict[str, Any]:
    return {"resource_provider": {"uuid": of}, "resources": amounts}


def asked_at(version: str, body: dict[str, Any]) -> dict[str, Any]:
    """A body with the fields that its version requires."""
    minor = int(version.partition(".")[2])
    more = {"consumer_generation": None} if minor >= 28 else {}
    kind = {"consumer_type": "INSTANCE"} if minor >= 38 else {}
    return {**body, **OWNER, **more, **kind}


def test_the_life_cycle_at_every_version(pair: Pair) -> None:
    two = held({"VCPU": 2})
    for minor in CHANGED_IN:
        version = f"1.{minor}"
        path = f"/allocations/{uuid(1000 + minor)}"
        others = [uuid(number + minor) for number in (2000, 3000)]
        forms = (
            {"allocations": [listed({"VCPU": 1})]},
            {"allocations": [listed({"VCPU": 1})], **OWNER},
            {"allocations": two, **OWNER},
            {"allocations": two, **OWNER, "consumer_generation": None},
            {**OWNER, "allocations": two, "consumer_generation": 1, "consumer_type": "A"},
            {
                **OWNER,
                "allocations": two,
                "consumer_generation": None,
                "consumer_type": "A",
                "mappings": {"": [BIG]},
            },
            {
                **OWNER,
                "allocations": two,
                "consumer_generation": 1,
                "mappings": {"_1": [BIG], "a": [BIG]},
            },
            {"allocations": {}, **OWNER, "consumer_generation": 1},
        )
        many = {other: asked_at(version, {"allocations": two}) for other in others}
        nothing = asked_at(version, {"allocations": {}})
        asks = [
            *(ask for form in forms for ask in (Ask("PUT", path, form), Ask("GET", path))),
            Ask("POST", "/allocations", many),
            Ask("GET", f"/allocations/{others[0]}"),
            Ask("POST", "/allocations", {others[0]: {**nothing, "consumer_generation": 1}}),
            Ask("GET", f"{PROVIDERS}/{BIG}/allocations"),
            Ask("GET", f"{PROVIDERS}/{BIG}/usages"),
            Ask("GET", "/usages?project_id=p"),
            Ask("GET", "/usages?project_id=p&user_id=u&consumer_type=all"),
            Ask("DELETE", path),
            *(Ask("DELETE", f"/allocations/{other}") for other in others),
        ]
        pair.agree(at([version], *asks))


REFUSED: tuple[dict[str, Any], ...] = (
    held({"VCPU": 5000}),
    held({"DISK_GB": 12}),
    held({"DISK_GB": 60}),
    held({"DISK_GB": 5}),
    held({"DISK_GB": 15, "VCPU": 0}),
    held({"PGPU": 5}),
    held({"NOPE": 5}),
    held({"VCPU": 5}, FULL),
    held({"VCPU": 1}, NOWHERE),
    held({"VCPU": 1}, "x"),
    held({"VCPU": 1}, BIG[:-1] + "-"),
    held({}),
    held({"VCPU": "1"}),
    held({"VCPU": 1.5}),
    held({"VCPU": None}),
    held({"VCPU": True}),
    held({"vcpu": 1}),
    {BIG: {"resources": {"VCPU": 1}, "foo": 1}},
    {BIG: {}},
    {BIG: 3},
    {**held({"VCPU": 1}), **held({"VCPU": 5}, FULL)},
)


@pytest.mark.parametrize("version", ["1.12", "1.27", "1.28", "1.37", "1.39"])
def test_refused_amounts(pair: Pair, version: str) -> None:
    # Each has a consumer of its own: a rejected first write may leave a trace in the original.
    minor = int(version.partition(".")[2])
    everything: tuple[Any, ...] = (*REFUSED, [], "x", None)
    asks = [
        Ask(
            "PUT",
            f"/allocations/{uuid(10000 + 100 * minor + number)}",
            asked_at(version, {"allocations": amounts}),
        )
        for number, amounts in enumerate(everything)
    ]
    path = f"/allocations/{uuid(4000)}"
    bodies: tuple[Any, ...] = ({}, [], "x", None, 7, {"allocations": held({"VCPU": 1})})
    for body in bodies:
        asks += [Ask("PUT", path, body), Ask("POST", "/allocations", body)]
    asks += [Ask("GET", path), Ask("GET", f"{PROVIDERS}/{BIG}")]
    pair.agree(at([version], *asks))


def test_refused_lines(pair: Pair) -> None:
    lines: tuple[Any, ...] = (
        [listed({"VCPU": 0})],
        [listed({"VCPU": 1}, NOWHERE)],
        [listed({})],
        [{}],
        [],
    )
    pair.agree(
        Ask("PUT", f"/allocations/{uuid(4050)}", {"allocations": each, **OWNER}, version)
        for each in lines
        for version in ("1.7", "1.8", "1.11")
    )


def test_consumers_owners(pair: Pair) -> None:
    path = f"/allocations/{uuid(4100)}"
    one = asked_at("1.39", {"allocations": held({"VCPU": 1})})
    asks = [Ask("PUT", path, one)]
    for change in (
        {"consumer_generation": None},
        {"consumer_generation": 0},
        {"consumer_generation": "1"},
        {"consumer_generation": 1, "project_id": ""},
        {"consumer_generation": 1, "project_id": "a" * 256},
        {"consumer_generation": 1, "user_id": 3},
        {"consumer_generation": 1, "consumer_type": ""},
        {"consumer_generation": 1, "consumer_type": "lower"},
        {"consumer_generation": 1, "consumer_type": "A" * 256},
        {"consumer_generation": 1, "consumer_type": None},
        {"consumer_generation": 1, "mappings": {}},
        {"consumer_generation": 1, "mappings": {"": []}},
        {"consumer_generation": 1, "mappings": {"_b": ["x"]}},
        {"consumer_generation": 1, "foo": 1},
        {"consumer_generation": 1, "project_id": "Ö", "user_id": "ß", "consumer_type": "B"},
        {"consumer_generation": 2, "allocations": {}},
        {"consumer_generation": 2},
    ):
        asks += [Ask("PUT", path, {**one, **change}), Ask("GET", path)]
    asks += [
        Ask("PUT", path, one),
        Ask("PUT", path, {"allocations": held({"VCPU": 3}), **OWNER}, "1.20"),
        Ask("GET", path),
        Ask("DELETE", path),
        Ask("DELETE", path),
        Ask("PUT", "/allocations/x", one),
        Ask("GET", "/allocations/x"),
        Ask("DELETE", "/allocations/x"),
    ]
    pair.agree(asks)


def test_many_at_once(pair: Pair) -> None:
    first, second = uuid(4200), uuid(4201)
    one = asked_at("1.39", {"allocations": held({"VCPU": 600})})
    none = {**one, "allocations": {}}
    bodies: tuple[Any, ...] = (
        {},
        [],
        {"x": one},
        {first: one, second: one},
        {first: one},
        {first: none, second: {**one, "consumer_generation": 4}},
        {first: {**none, "consumer_generation": 1}, second: one},
        {first: {**one, "foo": 1}, second: {}},
        {second: {**none, "consumer_generation": 1}},
        {first: {**one, "allocations": held({"VCPU": 1}, NOWHERE)}},
    )
    asks = [Ask("POST", "/allocations", body) for body in bodies]
    pair.agree(
        ask
        for each in asks
        for ask in (each, *(Ask("GET", f"/allocations/{one}") for one in (first, second)))
    )


def test_in_use(pair: Pair) -> None:
    provider = f"{PROVIDERS}/{BIG}"
    inventories = f"{provider}/inventories"
    body = asked_at("1.39", {"allocations": held({"VCPU": 10})})
    shrunk = {"resource_class": "VGPU", "total": 4}
    gone = {"resource_provider_generation": 0, "inventories": {}}
    pair.agree(
        [
            Ask("PUT", f"/allocations/{uuid(4300)}", body),
            Ask("DELETE", provider),
            Ask("DELETE", inventories),
            Ask("DELETE", f"{inventories}/VCPU"),
            Ask("DELETE", f"{inventories}/PGPU"),
            Ask("DELETE", f"{inventories}/NOPE"),
            Ask("PUT", inventories, gone),
            Ask("POST", inventories, shrunk),
            Ask("DELETE", f"{inventories}/VGPU"),
            Ask("GET", f"{provider}/usages"),
            Ask("GET", f"{provider}/allocations"),
            Ask("DELETE", f"/allocations/{uuid(4300)}"),
            Ask("GET", provider),
        ]
    )


def test_usages(pair: Pair) -> None:
    kinds = (("A", "mine", "me"), ("B", "mine", "me"), ("B", "mine", "you"), ("A", "other", "me"))
    for number, (kind, project, user) in enumerate(kinds, 4400):
        body = {
            "allocations": held({"VCPU": 3, "DISK_GB": 10}),
            "project_id": project,
            "user_id": user,
            "consumer_type": kind,
            "consumer_generation": None,
        }
        pair.agree([Ask("PUT", f"/allocations/{uuid(number)}", body)])
    old = {"allocations": held({"VCPU": 1}), "project_id": "mine", "user_id": "me"}
    pair.agree([Ask("PUT", f"/allocations/{uuid(4410)}", old, "1.20")])
    queries = (
        "",
        "project_id=mine",
        "project_id=mine&user_id=me",
        "project_id=mine&user_id=nobody",
        "project_id=mine&user_id=",
        "project_id=nobody",
        "project_id=",
        "project_id=" + "a" * 256,
        "project_id=%C3%96",
        "user_id=me",
        "project_id=other&project_id=mine",
        "project_id=mine&consumer_type=A",
        "project_id=mine&consumer_type=B&user_id=you",
        "project_id=mine&consumer_type=all",
        "project_id=mine&consumer_type=unknown",
        "project_id=mine&consumer_type=ALL",
        "project_id=mine&consumer_type=x",
        "project_id=mine&consumer_type=",
        "project_id=mine&consumer_type=A&consumer_type=B",
        "project_id=mine&foo=1",
    )
    versions = ("1.8", "1.9", "1.14", "1.15", "1.37", "1.38", "1.39")
    pair.agree(at(versions, *(Ask("GET", f"/usages?{query}") for query in queries)))
    path = "/usages?project_id=mine&consumer_type=allfoo"
    pair.agree([Ask("GET", path, differs="types beginning with all")])


def test_what_differs(pair: Pair) -> None:
    path, lost = (f"/allocations/{uuid(number)}" for number in (4500, 4510))
    empty = asked_at("1.39", {"allocations": {}})
    one = asked_at("1.39", {"allocations": held({"VCPU": 1})})
    twice = {"allocations": [listed({"VCPU": 1}), listed({"VCPU": 2})], **OWNER}
    unknown = {**one, "allocations": held({"NOPE": 1})}
    odd = uuid(3)
    inventory = {"resource_class": "VCPU", "total": 100, "min_unit": 5, "step_size": 10}
    pair.agree(
        [
            Ask("PUT", path, empty),
            Ask("PUT", path, one, differs="first write of nothing"),
            Ask("PUT", lost, {**one, "allocations": held({"VCPU": 1}, NOWHERE)}),
            Ask("PUT", lost, one, differs="first write of nothing"),
            Ask("PUT", f"/allocations/{uuid(4501)}", twice, "1.11", differs="named twice"),
            Ask("POST", "/allocations", {uuid(4502): unknown}, differs="whose"),
            Ask("POST", PROVIDERS, {"name": "odd", "uuid": odd}),
            Ask("POST", f"{PROVIDERS}/{odd}/inventories", inventory),
            Ask(
                "PUT",
                f"/allocations/{uuid(4503)}",
                {**one, "allocations": held({"VCPU": 5}, odd)},
                differs="step",
            ),
        ]
    )
