"""Providers and their data: as with the original, version by version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.compat.comparing import Ask, Pair, at, both, uuid

pytestmark = pytest.mark.slow
PROVIDERS = "/resource_providers"
NOWHERE = uuid(99999)
CHANGED_IN = (0, 1, 4, 5, 6, 11, 13, 14, 15, 18, 19, 20, 22, 23, 25, 26, 36, 37, 39)
"""The minor versions that change the format, and the versions just before them."""
ASKED_IN = {
    "member_of": ("1.2", "1.3", "1.23", "1.24", "1.31", "1.32", "1.39"),
    "resources": ("1.3", "1.4", "1.39"),
    "in_tree": ("1.13", "1.14", "1.39"),
    "required": ("1.17", "1.18", "1.21", "1.22", "1.38", "1.39"),
}
"""The versions that change a parameter, and those before; or the first and last version."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with both(tmp_path_factory.mktemp("providers")) as made:
        yield made


def path(number: int, part: str = "") -> str:
    return f"{PROVIDERS}/{uuid(number)}{part}"


def made(number: int, name: str | None = None, **more: Any) -> Ask:
    body = {"name": name or f"provider {number}", "uuid": uuid(number), **more}
    return Ask("POST", PROVIDERS, body)


def test_the_life_cycle_at_every_version(pair: Pair) -> None:
    for minor in CHANGED_IN:
        version = f"1.{minor}"
        number = 100 + minor
        own = {"name": f"p{minor}", "uuid": uuid(number)}
        inventories, aggregates = path(number, "/inventories"), path(number, "/aggregates")
        traits = path(number, "/traits")
        everything = {"VCPU": {"total": 8}, "DISK_GB": {"total": 10, "reserved": 10}}
        asks = [
            Ask("POST", PROVIDERS, own),
            Ask("POST", PROVIDERS, own),
            Ask("POST", PROVIDERS, {**own, "parent_provider_uuid": None}),
            Ask("GET", path(number)),
            Ask("PUT", path(number), {"name": f"renamed {minor}"}),
            Ask("PUT", path(number), {"name": "x", "parent_provider_uuid": uuid(number)}),
            Ask("PUT", inventories, {"resource_provider_generation": 0, "inventories": everything}),
            Ask("GET", inventories, differs=None if minor < 15 or minor > 25 else "dates"),
            Ask("POST", inventories, {"resource_class": "MEMORY_MB", "total": 1000}),
            Ask("POST", inventories, {"resource_class": "MEMORY_MB", "total": 1000}),
            Ask(
                "PUT",
                f"{inventories}/MEMORY_MB",
                {"resource_provider_generation": 1 if minor < 26 else 2, "total": 99},
            ),
            Ask("GET", f"{inventories}/MEMORY_MB"),
            Ask("PUT", aggregates, [uuid(500), uuid(501)]),
            Ask(
                "PUT",
                aggregates,
                {"resource_provider_generation": 2 if minor < 26 else 3, "aggregates": [uuid(500)]},
            ),
            Ask("GET", aggregates, any_order=True),
            *(
                Ask(
                    "PUT",
                    traits,
                    {"resource_provider_generation": seen, "traits": ["HW_CPU_X86_AVX"]},
                )
                for seen in (2, 3, 4)
            ),
            Ask("GET", traits),
            Ask("GET", path(number)),
            Ask("GET", PROVIDERS),
            Ask("DELETE", traits),
            Ask("DELETE", f"{inventories}/MEMORY_MB"),
            Ask("DELETE", inventories),
            Ask("DELETE", path(number)),
        ]
        pair.agree(at([version], *asks))


def test_strangers(pair: Pair) -> None:
    for part in ("", "/inventories", "/inventories/VCPU", "/usages", "/aggregates", "/traits"):
        pair.agree(Ask("GET", f"{PROVIDERS}/{who}{part}") for who in (NOWHERE, "x", "a" * 300))
        pair.agree([Ask("DELETE", f"{PROVIDERS}/{NOWHERE}{part}")])
    pair.agree([Ask("GET", f"{PROVIDERS}/{NOWHERE}/allocations")])


NAMES: tuple[Any, ...] = (
    "Löwe",
    "名前",
    "😀",
    " lead",
    "a" * 200,
    "a" * 201,
    "é" * 200,
    "tab\t",
    "new\nline",
    "",
    None,
    3,
    True,
    [],
    {},
    "\\",
    "%",
    "_",
    "'\"",
)


def test_names(pair: Pair) -> None:
    for number, name in enumerate(NAMES, 2000):
        pair.agree([Ask("POST", PROVIDERS, {"name": name, "uuid": uuid(number)})])
    asked = [name for name in NAMES if isinstance(name, str)]
    pair.agree(Ask("GET", f"{PROVIDERS}?name={quote(name)}") for name in asked)
    pair.agree(Ask("GET", f"{PROVIDERS}?name={name}") for name in ("%ff", "a%2Bb", "a+b", "LÖWE"))
    pair.agree(
        [
            Ask("PUT", path(2000), {"name": "名前"}),
            Ask("PUT", path(2000), {"name": 3}),
            Ask("PUT", path(2000), {"name": "Löwe", "uuid": uuid(2000)}),
            Ask("PUT", path(2000), {}),
            Ask("PUT", path(2000), {"name": "Löwe"}),
            Ask("GET", path(2000)),
        ]
    )
    # The original accepts this request, which our service rejects. So the change is undone there.
    odd = {"name": "x\0y", "uuid": uuid(2100)}
    pair.agree(
        [
            Ask("PUT", path(2001), {"name": ""}, differs="empty name"),
            Ask("PUT", path(2001), {"name": "名前"}),
            Ask("POST", PROVIDERS, odd, differs="nul"),
            Ask("DELETE", path(2100), differs="nul"),
        ]
    )


def test_forms_of_uuids(pair: Pair) -> None:
    dashless, capitals = uuid(3000).replace("-", ""), "ABCDEF00-0000-4000-8000-000000003001"
    braces, urn = "{" + uuid(3002) + "}", f"urn:uuid:{uuid(3003)}"
    forms = (dashless, capitals, braces, urn)
    for number, form in enumerate(forms):
        pair.agree([Ask("POST", PROVIDERS, {"name": f"form {number}", "uuid": form})])
    pair.agree([Ask("GET", path(3000)), Ask("GET", f"{PROVIDERS}/{capitals.lower()}")])
    pair.agree(Ask("POST", PROVIDERS, {"name": "z", "uuid": bad}) for bad in ("", "x", 3, None))
    found = [f"{PROVIDERS}/{form}" for form in (dashless, capitals)]
    found += [f"{PROVIDERS}?uuid={form}" for form in (dashless, capitals)]
    pair.agree(Ask("GET", each, differs="case of uuids") for each in found)
    for form in (dashless, capitals):
        child = {"name": "child", "uuid": uuid(3010), "parent_provider_uuid": form}
        pair.agree(
            [
                Ask("POST", PROVIDERS, child, differs="case of uuids"),
                Ask("DELETE", path(3010), differs="case of uuids"),
            ]
        )


def test_trees(pair: Pair) -> None:
    top, child, leaf, other = 4000, 4001, 4002, 4003

    def moved(number: int, parent: str | None, version: str, **more: Any) -> Ask:
        body = {"name": f"provider {number}", "parent_provider_uuid": parent}
        return Ask("PUT", path(number), body, version, **more)

    pair.agree(
        [
            made(top),
            made(other),
            made(child, parent_provider_uuid=uuid(top)),
            made(leaf, parent_provider_uuid=uuid(child)),
            made(4009, parent_provider_uuid=uuid(4009)),
            made(4009, parent_provider_uuid=NOWHERE),
            made(4009, parent_provider_uuid="x"),
            made(4009, parent_provider_uuid=""),
            made(4009, parent_provider_uuid=3),
        ]
    )
    family = [Ask("GET", f"{PROVIDERS}?in_tree={uuid(each)}") for each in (top, leaf, other)]
    for version in ("1.14", "1.36", "1.37", "1.39"):
        pair.agree(
            [
                moved(child, None, version, differs="dates" if version == "1.37" else None),
                moved(child, uuid(other), version),
                moved(child, uuid(leaf), version),
                moved(top, uuid(leaf), version),
                moved(top, uuid(top), version),
                moved(leaf, uuid(other), version),
                moved(leaf, NOWHERE, version),
                moved(leaf, "x", version),
                *family,
                *at([version], Ask("DELETE", path(top)), Ask("DELETE", path(other))),
                *family,
                moved(top, uuid(other), version),
                moved(other, uuid(leaf), version),
                *family,
            ]
        )


def test_finding(pair: Pair) -> None:
    first, second = 5000, 5001
    have = {"VCPU": {"total": 8}, "DISK_GB": {"total": 100, "min_unit": 10, "step_size": 5}}
    pair.agree(
        [
            made(first, "first"),
            made(second, "second", parent_provider_uuid=uuid(first)),
            Ask(
                "PUT",
                path(first, "/inventories"),
                {"resource_provider_generation": 0, "inventories": have},
            ),
            Ask("PUT", path(first, "/aggregates"), [uuid(500)], "1.1"),
            Ask("PUT", path(second, "/aggregates"), [uuid(500), uuid(501)], "1.1"),
            Ask(
                "PUT",
                path(second, "/traits"),
                {"resource_provider_generation": 0, "traits": ["HW_CPU_X86_AVX"]},
            ),
        ]
    )
    queries = (
        "name=first",
        "name=",
        "name",
        "name=a&name=first",
        f"uuid={uuid(second)}",
        "uuid=x",
        f"uuid={NOWHERE}",
        f"in_tree={uuid(second)}",
        f"in_tree={NOWHERE}",
        "in_tree=x",
        f"member_of={uuid(500)}",
        f"member_of={uuid(777)}",
        f"member_of=in:{uuid(777)},{uuid(501)}",
        f"member_of=in:{uuid(500)},",
        f"member_of={uuid(500)},{uuid(501)}",
        f"member_of=!{uuid(501)}",
        f"member_of=!in:{uuid(501)},{uuid(777)}",
        f"member_of=!!{uuid(501)}",
        f"member_of=in:!{uuid(501)}",
        "member_of=x",
        "member_of=",
        "member_of=in:",
        f"member_of={uuid(500)}&member_of={uuid(501)}",
        "resources=VCPU:8",
        "resources=VCPU:9",
        "resources=DISK_GB:10,VCPU:1",
        "resources=DISK_GB:12",
        "resources=DISK_GB:5",
        "resources=VCPU:1&resources=VCPU:99",
        "resources=VCPU",
        "resources=",
        "resources=VCPU:",
        "resources=:1",
        "resources=VCPU:1,",
        "resources=VCPU:1:2",
        "resources=VCPU:x",
        "resources=VCPU:1.5",
        "resources=VCPU:0",
        "resources=VCPU:-1",
        "resources=VCPU:%2B1",
        "resources=VCPU:%201",
        "resources=NOPE:1",
        "resources=vcpu:1",
        "required=HW_CPU_X86_AVX",
        "required=!HW_CPU_X86_AVX",
        "required=!!HW_CPU_X86_AVX",
        "required=HW_CPU_X86_AVX,HW_CPU_X86_AVX2",
        "required=HW_CPU_X86_AVX,!HW_CPU_X86_AVX2",
        "required=HW_CPU_X86_AVX,!HW_CPU_X86_AVX",
        "required=in:HW_CPU_X86_AVX,HW_CPU_X86_AVX2",
        "required=in:HW_CPU_X86_AVX,%20HW_CPU_X86_AVX2",
        "required=HW_CPU_X86_AVX,%20HW_CPU_X86_AVX",
        "required=in:!HW_CPU_X86_AVX",
        "required=in:",
        "required=",
        "required=HW_CPU_X86_AVX,",
        "required=NOPE",
        "required=!NOPE",
        "required=in:NOPE",
        "required=hw_cpu_x86_avx",
        "required=HW_CPU_X86_AVX&required=!HW_CPU_X86_AVX2",
        "foo=1",
        "name=first&foo=1",
        "&",
        "=x",
    )
    for query in queries:
        versions = ASKED_IN.get(query.partition("=")[0], ("1.0", "1.39"))
        pair.agree(at(versions, Ask("GET", f"{PROVIDERS}?{query}")))
    others = ("/inventories", "/aggregates", "/traits", "/usages", "/allocations", "")
    pair.agree(Ask("GET", path(first, f"{part}?foo=1")) for part in others)
    pair.agree(
        [
            Ask("GET", f"{PROVIDERS}?resources=VCPU:1_0", differs="digits"),
            Ask("GET", f"{PROVIDERS}?resources=VCPU:{10**21}", differs="huge amount"),
        ]
    )
