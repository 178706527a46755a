"""The order of lists over several pods."""

from __future__ import annotations

from functools import partial
from itertools import product

import msgspec
import pytest

from innkeeper.clients.pods import PodAnswer
from innkeeper.domain.door import SERVER, VOLUME, Json
from innkeeper.domain.errors import Invalid
from innkeeper.engine.pods.list_orders import ListOrder, RankedRow
from innkeeper.engine.pods.listed_rows import RowLayouts

ROWS: list[dict[str, Json]] = [
    {"id": uuid, "name": name, "created": created, "updated": updated}
    for uuid, (name, created, updated) in enumerate(
        product(["b", "a"], ["2026-11-26T18:00:01Z", "2026-11-26T18:00:00Z"], [None, "2026"])
    )
]
for _row in ROWS:
    _row["id"] = f"id-{_row['id']}"
NEWEST = [("created_at", True), ("uuid", True)]


def ranked(order: ListOrder) -> list[RankedRow]:
    """Return the rows with their ranks and ids."""
    body = msgspec.json.encode({"servers": ROWS})
    page = RowLayouts().page((), "servers", PodAnswer(200, {}, body))
    return list(zip(order.ranks(page), page.ids, page.rows, strict=True))


def value_of(name: str, row: dict[str, Json]) -> str:
    """Return a value, so that nulls come first."""
    return str(row[name] or "")


def test_numbers_of_any_size_have_an_order() -> None:
    order = ListOrder.of(VOLUME, [("size", False), ("id", False)])
    sizes: list[Json] = [10**400, 2.5, -(10**400), True]
    rows = [{"id": str(place), "size": size} for place, size in enumerate(sizes)]
    ranks: list[RankedRow] = [(order.rank(row), str(row["id"]), row) for row in rows]
    order.sort(ranks)
    assert [uuid for _, uuid, _ in ranks] == ["2", "3", "1", "0"]


@pytest.mark.parametrize("ways", list(product([True, False], repeat=4)))
def test_rows_are_sorted_by_each_key_in_its_own_direction(ways: tuple[bool, ...]) -> None:
    keys = ("display_name", "updated_at", "created_at", "uuid")
    order = ListOrder.of(SERVER, list(zip(keys, ways, strict=True)))
    rows = ranked(order)
    order.sort(rows)
    expected = list(ROWS)
    for name, is_descending in zip(("id", "created", "updated", "name"), ways[::-1], strict=True):
        expected.sort(key=partial(value_of, name), reverse=is_descending)
    assert [uuid for _, uuid, _ in rows] == [each["id"] for each in expected]
    for place, (rank, _, _) in enumerate(rows):
        after = [order.is_after(each, rank) for each, _, _ in rows]
        assert after == [other > place for other in range(len(rows))]


def test_a_marker_is_compared_with_rows_of_pages() -> None:
    order = ListOrder.of(SERVER, NEWEST)
    assert [order.rank(row) for row in ROWS] == [rank for rank, _, _ in ranked(order)]


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(Invalid):
        ListOrder.of(VOLUME, [("uuid", True)])


def test_values_of_different_types_can_be_compared() -> None:
    order = ListOrder([("x", False)])
    told: list[Json] = [None, False, 2, 2.5, "", "a", {}, []]
    ranks = [order.rank({"x": value}) for value in told]
    assert sorted(ranks)[:4] == ranks[:4]
