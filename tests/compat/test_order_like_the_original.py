"""Lists have the original's order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compat.comparing import Ask, Pair, both, uuid

pytestmark = pytest.mark.slow
PROVIDERS = "/resource_providers"
NAMES = ("CUSTOM_ZINC", "CUSTOM_COPPER", "CUSTOM_IRON")
"""Created in this order, which is not the alphabetical one."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with both(tmp_path_factory.mktemp("order")) as made:
        made.agree(
            Ask("PUT", f"/{kind}/{name}")
            for kind in ("traits", "resource_classes")
            for name in NAMES
        )
        yield made


def made(number: int, name: str) -> Ask:
    return Ask("POST", PROVIDERS, {"name": name, "uuid": uuid(number)})


def test_providers_and_names(pair: Pair) -> None:
    pair.agree(made(number, name) for number, name in ((9, "zoo"), (8, "ant"), (7, "mole")))
    pair.agree(
        Ask("GET", path)
        for path in (
            PROVIDERS,
            "/resource_classes",
            "/traits?name=startswith:CUSTOM_",
            f"/traits?name=in:{','.join(NAMES)}",
        )
    )


def test_traits_of_a_provider(pair: Pair) -> None:
    path = f"{PROVIDERS}/{uuid(20)}/traits"
    body = {"traits": [*NAMES, "HW_CPU_X86_AVX"], "resource_provider_generation": 0}
    pair.agree([made(20, "twenty"), Ask("PUT", path, body), Ask("GET", path)])


def test_aggregates_come_in_the_order_of_joining(pair: Pair) -> None:
    path, ids = f"{PROVIDERS}/{uuid(30)}/aggregates", [uuid(number) for number in (3, 1, 2)]
    wanted = (ids[:1], ids[:2], ids, ids[1:], ids[1:2], [uuid(4), ids[1]])
    asks = [made(30, "thirty")]
    for generation, aggregates in enumerate(wanted):
        body = {"aggregates": aggregates, "resource_provider_generation": generation}
        asks += [Ask("PUT", path, body), Ask("GET", path)]
    pair.agree(asks)


def test_an_aggregate_that_is_rejoined_is_listed_last(pair: Pair) -> None:
    path, first, second = f"{PROVIDERS}/{uuid(50)}/aggregates", uuid(51), uuid(52)
    asks = [made(50, "fifty")]
    wanted = ([first], [first, second], [second])
    for generation, aggregates in enumerate(wanted):
        body = {"aggregates": aggregates, "resource_provider_generation": generation}
        asks.append(Ask("PUT", path, body))
    body = {"aggregates": [first, second], "resource_provider_generation": len(wanted)}
    asks += [Ask("PUT", path, body), Ask("GET", path, differs="order of joining")]
    pair.agree(asks)


def test_inventories_come_in_the_order_of_the_classes(pair: Pair) -> None:
    path = f"{PROVIDERS}/{uuid(40)}/inventories"
    have = {name: {"total": 9} for name in ("CUSTOM_IRON", "DISK_GB", "CUSTOM_ZINC", "VCPU")}
    body = {"inventories": have, "resource_provider_generation": 0}
    pair.agree([made(40, "forty"), Ask("PUT", path, body)])
    theirs, ours = (list(each.json()["inventories"]) for each in pair.ask(Ask("GET", path)))
    assert ours == theirs == ["VCPU", "DISK_GB", "CUSTOM_ZINC", "CUSTOM_IRON"]
