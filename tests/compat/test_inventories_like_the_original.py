"""Inventories, aggregates and traits of providers: as with the original."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.comparing import Ask, Pair, at, both, uuid

pytestmark = pytest.mark.slow
PROVIDERS = "/resource_providers"
NOWHERE = uuid(99999)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with both(tmp_path_factory.mktemp("inventories")) as made:
        yield made


def path(number: int, part: str = "") -> str:
    return f"{PROVIDERS}/{uuid(number)}{part}"


def made(number: int) -> Ask:
    return Ask("POST", PROVIDERS, {"name": f"provider {number}", "uuid": uuid(number)})


FIELDS: tuple[tuple[str, Any], ...] = (
    *(("total", value) for value in (0, -1, 1, 2**31 - 1, 2**31, 8.0, 8.5, "8", None, True)),
    *(("reserved", value) for value in (-1, 0, 10, 11, 2**31, 1.0)),
    *(("min_unit", value) for value in (0, 1, 2**31 - 1, 2**31)),
    *(("max_unit", value) for value in (0, 1, 2**31)),
    *(("step_size", value) for value in (0, 1, 2**31)),
    *(("allocation_ratio", value) for value in (0, -1, 1, 1.5, 3.40282e38, 3.5e38, "1", 0.05)),
    ("foo", 1),
    ("resource_provider_generation", "x"),
)


def test_fields_of_inventories(pair: Pair) -> None:
    inventories = path(6000, "/inventories")
    pair.agree([made(6000)])
    for name, value in FIELDS:
        line = {"total": 10, name: value}
        asks = [
            Ask(
                "PUT",
                inventories,
                {"resource_provider_generation": 77, "inventories": {"VCPU": line}},
            ),
            Ask("PUT", f"{inventories}/VCPU", {"resource_provider_generation": 77, **line}),
            Ask("POST", inventories, {"resource_class": "VCPU", **line}),
            Ask("GET", f"{inventories}/VCPU"),
            Ask("DELETE", f"{inventories}/VCPU"),
        ]
        is_about_capacity = name in ("total", "reserved", "allocation_ratio")
        pair.agree(at(("1.25", "1.39") if is_about_capacity else ("1.39",), *asks))


def test_bodies_of_inventories(pair: Pair) -> None:
    inventories = path(6100, "/inventories")
    asks = [made(6100)]
    classes = ("NOPE", "CUSTOM_NOPE", "vcpu", "", "A B", 3, None)
    for body in (
        *({"resource_class": name, "total": 1} for name in classes),
        {"resource_class": "VCPU"},
        {"total": 1},
        {"resource_class": "VCPU", "total": 1, "resource_provider_generation": 99},
    ):
        asks.append(Ask("POST", inventories, body))
        asks.append(Ask("POST", f"{PROVIDERS}/{NOWHERE}/inventories", body))
    wholes: tuple[Any, ...] = (
        {"resource_provider_generation": 1},
        {"inventories": {}},
        {"resource_provider_generation": 1, "inventories": {"NOPE": {"total": 1}}},
        {"resource_provider_generation": 0, "inventories": {"NOPE": {"total": 1}}},
        {
            "resource_provider_generation": 1,
            "inventories": {"PGPU": {"total": 1}, "VCPU": {"total": 1, "reserved": 5}},
        },
        {"resource_provider_generation": 1, "inventories": {"VCPU": {}}},
        {"resource_provider_generation": "1", "inventories": {}},
        {"resource_provider_generation": None, "inventories": {}},
        {"resource_provider_generation": True, "inventories": {}},
        {"resource_provider_generation": 2**70, "inventories": {}},
        {"resource_provider_generation": -1, "inventories": {}},
        {"resource_provider_generation": 1, "inventories": []},
        {"resource_provider_generation": 1.0, "inventories": {"PGPU": {"total": 1}}},
    )
    for whole in wholes:
        asks.append(Ask("PUT", inventories, whole))
        asks.append(Ask("PUT", f"{PROVIDERS}/{NOWHERE}/inventories", whole))
    for name in ("NOPE", "VGPU", "vcpu", "PGPU"):
        body = {"resource_provider_generation": 2, "total": 1}
        asks.append(Ask("PUT", f"{inventories}/{name}", body))
        asks.append(Ask("GET", f"{inventories}/{name}"))
        asks.append(Ask("DELETE", f"{inventories}/{name}"))
    pair.agree(at(("1.25", "1.39"), *asks))
    body = {"resource_provider_generation": 0, "inventories": {"vcpu": {"total": 1}}}
    pair.agree([Ask("PUT", inventories, body, differs="inventory keys")])


def test_aggregates_and_traits(pair: Pair) -> None:
    aggregates, traits = path(7000, "/aggregates"), path(7000, "/traits")
    asks = [made(7000)]
    sets: tuple[Any, ...] = ([], [uuid(1)], [uuid(1), uuid(1)], ["x"], [3], "x", {}, None)
    for wanted in sets:
        asks += [
            Ask("PUT", aggregates, wanted, "1.18"),
            Ask("GET", aggregates, None, "1.18"),
            Ask("PUT", aggregates, {"aggregates": wanted, "resource_provider_generation": 0}),
            Ask("PUT", aggregates, {"aggregates": wanted}),
            Ask("PUT", f"{PROVIDERS}/{NOWHERE}/aggregates", wanted, "1.18"),
        ]
    known = "HW_CPU_X86_AVX"
    choices: tuple[Any, ...] = (
        [],
        [known],
        [known, known],
        ["nope"],
        ["NO"],
        [""],
        ["a" * 256],
        [3],
        {},
    )
    for names in choices:
        asks += [
            Ask("PUT", traits, {"traits": names, "resource_provider_generation": seen})
            for seen in (1, 2, 3, 99)
        ]
        body = {"traits": names, "resource_provider_generation": 1}
        asks.append(Ask("PUT", f"{PROVIDERS}/{NOWHERE}/traits", body))
        asks.append(Ask("GET", traits))
    asks += [
        Ask("PUT", traits, {"traits": []}),
        Ask("PUT", traits, {"resource_provider_generation": 1}),
        Ask("PUT", traits, {"traits": [], "resource_provider_generation": 1, "foo": 1}),
        Ask("DELETE", traits),
        Ask("DELETE", traits),
        Ask("GET", path(7000)),
    ]
    pair.agree(asks)
