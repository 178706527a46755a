"""Resource classes and traits: as with the original."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.comparing import Ask, Pair, at, both, uuid

pytestmark = pytest.mark.slow
CHANGED_IN = (0, 1, 2, 5, 6, 7, 14, 15, 22, 23, 39)
"""The minor versions that change the format, and the versions just before them."""
CLASSES, TRAITS = "/resource_classes", "/traits"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with both(tmp_path_factory.mktemp("names")) as made:
        yield made


def test_the_life_cycle_at_every_version(pair: Pair) -> None:
    for minor in CHANGED_IN:
        version = f"1.{minor}"
        own, new = f"{CLASSES}/CUSTOM_C{minor}", f"CUSTOM_R{minor}"
        trait = f"{TRAITS}/CUSTOM_T{minor}"
        asks = [
            Ask("POST", CLASSES, {"name": f"CUSTOM_C{minor}"}),
            Ask("POST", CLASSES, {"name": f"CUSTOM_C{minor}"}),
            Ask("GET", own),
            Ask("PUT", own),
            Ask("PUT", own, {"name": new}),
            Ask("PUT", f"{CLASSES}/{new}"),
            Ask("PUT", f"{CLASSES}/{new}", {"name": "VCPU"}),
            Ask("GET", CLASSES),
            Ask("DELETE", own),
            Ask("DELETE", f"{CLASSES}/{new}"),
            Ask("PUT", trait),
            Ask("PUT", trait),
            Ask("GET", trait),
            Ask("GET", f"{TRAITS}?name=startswith:CUSTOM"),
            Ask("DELETE", trait),
            Ask("DELETE", trait),
        ]
        pair.agree(at([version], *asks))


NAMES = (
    "CUSTOM_A",
    "CUSTOM_",
    "custom_a",
    "CUSTOM_a",
    "CUSTOM_A-B",
    "CUSTOM_A%20",
    "CUSTOM_" + "A" * 248,
    "CUSTOM_" + "A" * 249,
    "VCPU",
    "HW_CPU_X86_AVX",
    "NOPE",
)


def test_names(pair: Pair) -> None:
    for name in NAMES:
        for base in (CLASSES, TRAITS):
            pair.agree(
                Ask(method, f"{base}/{name}")
                for method in ("PUT", "PUT", "GET", "DELETE", "GET", "DELETE")
            )
        pair.agree(
            [
                Ask("POST", CLASSES, {"name": name}),
                Ask("PUT", f"{CLASSES}/CUSTOM_NOPE", {"name": name}, "1.6"),
                Ask("PUT", f"{CLASSES}/VCPU", {"name": name}, "1.6"),
                Ask("DELETE", f"{CLASSES}/{name}"),
            ]
        )
    line = f"{TRAITS}/CUSTOM_A%0A"
    pair.agree(Ask(how, line, differs="line end") for how in ("PUT", "GET", "DELETE"))
    pair.agree([Ask("PUT", f"{TRAITS}/CUSTOM_%C3%96")])
    pair.agree([Ask("GET", f"{TRAITS}/CUSTOM_%C3%96", differs="utf-8")])


def test_bodies(pair: Pair) -> None:
    pair.agree([Ask("POST", CLASSES, {"name": "CUSTOM_MINE"})])
    bodies: tuple[Any, ...] = (
        {},
        {"name": 3},
        {"name": ""},
        {"name": None},
        {"name": "CUSTOM_X", "x": 1},
        {"name": "CUSTOM_MINE"},
        {"name": "VCPU"},
        [],
    )
    for body in bodies:
        for version in ("1.2", "1.6", "1.39"):
            pair.agree([Ask("POST", CLASSES, body, version)])
        paths = ("CUSTOM_NOPE", "CUSTOM_MINE", "VCPU")
        pair.agree(Ask("PUT", f"{CLASSES}/{name}", body, "1.6") for name in paths)
    pair.agree([Ask("GET", f"{CLASSES}/CUSTOM_MINE"), Ask("GET", CLASSES)])


def test_in_use(pair: Pair) -> None:
    provider = f"/resource_providers/{uuid(1)}"
    traits = {"traits": ["CUSTOM_USED", "HW_CPU_X86_AVX"], "resource_provider_generation": 1}
    pair.agree(
        [
            Ask("PUT", f"{CLASSES}/CUSTOM_USED"),
            Ask("PUT", f"{TRAITS}/CUSTOM_USED"),
            Ask("PUT", f"{TRAITS}/CUSTOM_FREE"),
            Ask("POST", "/resource_providers", {"name": "user", "uuid": uuid(1)}),
            Ask("POST", f"{provider}/inventories", {"resource_class": "CUSTOM_USED", "total": 1}),
            Ask("PUT", f"{provider}/traits", traits),
            Ask("DELETE", f"{CLASSES}/CUSTOM_USED"),
            Ask("DELETE", f"{TRAITS}/CUSTOM_USED"),
        ]
    )
    alike = (
        "",
        "?name=in:HW_CPU_X86_AVX,NOPE",
        "?name=in:",
        "?name=in:CUSTOM_USED&name=in:CUSTOM_FREE",
        "?name=startswith:CUSTOM_",
        "?name=startswith:hw",
        "?name=startswith:",
        "?name=startswith",
        "?name=foo",
        "?name=",
        "?associated=true",
        "?associated=True",
        "?associated=FALSE",
        "?associated=x",
        "?associated=",
        "?associated=true&associated=false",
        "?name=startswith:CUSTOM_&associated=false",
        "?name=in:CUSTOM_USED,CUSTOM_FREE&associated=true",
        "?foo=1",
    )
    pair.agree(at(("1.6", "1.39"), *(Ask("GET", TRAITS + query) for query in alike)))
    for query, reason in (
        ("?name=foo:x", "operators"),
        ("?name=startswith:%25", "literally"),
        ("?name=startswith:HW_CPU_X8_", "literally"),
    ):
        pair.agree([Ask("GET", TRAITS + query, differs=reason)])
    pair.agree(Ask("GET", f"{path}?x=1") for path in (CLASSES, f"{CLASSES}/VCPU"))
    pair.agree([Ask("GET", f"{TRAITS}/CUSTOM_USED?x=1")])
