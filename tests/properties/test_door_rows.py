"""Rows of lists through a door: the fast code changes them exactly as it changes single answers."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from innkeeper.clients.pods import PodAnswer, PodSilent
from innkeeper.domain.door import MARK, Json
from innkeeper.engine.pods.listed_rows import BRIEF, RowLayouts
from innkeeper.engine.pods.shown import (
    HIDDEN,
    HOSTS,
    OF_USERS,
    PROJECTS,
    TEXTS,
    WHOLE,
    ZONES,
    DoorView,
)
from innkeeper.engine.pods.shown_rows import RowView
from tests.support.pod_rows import pod_of

ID, OTHER_ID = "0b1c0000-0000-4000-8000-000000000001", "9d8e"
VIEW = DoorView(pod_of(1), "acme", "ann", None, None, "http://door/compute", is_admin=False)
NAMES = sorted(
    {*PROJECTS, *HIDDEN, *TEXTS, *WHOLE, *ZONES, *OF_USERS, MARK, "a:project_id", "name", "flavor"}
    | {f"{each}name" for each in HOSTS}
    | {"image_id"}
)
HREFS = st.sampled_from(
    [f"http://pod/{part}" for part in (f"v2.1/servers/{ID}", f"x/images/{OTHER_ID}", "secret")]
)
LINKS = st.lists(
    st.one_of(
        st.none(),
        st.fixed_dictionaries({"rel": st.sampled_from(["self", "bookmark", None]), "href": HREFS}),
    ),
    max_size=3,
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 9),
    st.sampled_from(["", "nova", "k-0123456789abcdef", "a \\ b", "\x7f", "Zoë", "\n"]),
)
VALUES = st.recursive(
    SCALARS | LINKS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=8,
)
IDS = st.sampled_from([ID, "s", "v2.1"])
ROWS = st.lists(
    st.tuples(IDS, st.dictionaries(st.sampled_from([*NAMES, "links"]), VALUES, max_size=8)).map(
        lambda row: {**row[1], "id": row[0]}
    ),
    max_size=4,
)
Row = dict[str, Json]


def changed(layouts: RowLayouts, view: DoorView, rows: list[Row], body: bytes = b"") -> list[Row]:
    """Return the rows of a page as the door shows them."""
    page = layouts.page((), "servers", PodAnswer(200, {}, body or msgspec.json.encode(told(rows))))
    RowView(view, page.layout).change(page.rows, page.ids)
    decoded: list[Row] = msgspec.json.decode(msgspec.json.encode(page.rows))
    return decoded


def told(rows: list[Row]) -> dict[str, list[Row]]:
    """Return the body of a list."""
    return {"servers": rows}


@given(
    st.lists(ROWS, min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([None, "ann"]),
    st.sampled_from([None, "top-image"]),
    st.sampled_from([None, "g"]),
)
def test_a_row_is_changed_as_an_answer_is(
    pages: list[list[Row]],
    is_admin: bool,
    user_id: str | None,
    image_id: str | None,
    group: str | None,
) -> None:
    view = DoorView(
        pod_of(1), "acme", user_id, image_id, group, "http://door/compute", is_admin=is_admin
    )
    layouts = RowLayouts()
    for rows in pages:
        expected = [view.change(each) for each in rows]
        assert changed(layouts, view, rows) == expected


def test_names_are_found_however_the_pod_writes_them() -> None:
    escaped = rb'{"id": "a", "x": {"tenant\u005fid": "there", "a\/b": "c"}, "us\u0065r_id": "door"}'
    body = b'{"servers": [%s]}' % escaped
    expected = [{"id": "a", "x": {"tenant_id": "acme", "a/b": "c"}, "user_id": "ann"}]
    assert changed(RowLayouts(), VIEW, [], body) == expected


def test_rows_have_the_fields_of_a_list_without_details() -> None:
    rows: list[Row] = [{"id": "a", "name": "n", "status": "ACTIVE", "links": []}, {"id": "b"}]
    layouts = RowLayouts()
    page = layouts.page((), "servers", PodAnswer(200, {}, msgspec.json.encode(told(rows))))
    brief = [page.layout.brief(each) for each in page.rows]
    found = msgspec.json.decode(msgspec.json.encode(brief))
    assert found == [{name: row[name] for name in BRIEF if name in row} for row in rows]


def nested(depth: int) -> bytes:
    """Return lists within lists."""
    return b"[" * depth + b"1" + b"]" * depth


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"[]",
        b'{"servers": {}}',
        b'{"servers": [1]}',
        b'{"servers": [{"name": "a"}]}',
        b'{"servers": [{"id": 1}]}',
        b'{"servers": [{"id": "a", "name": "\xff"}]}',
        b'{"servers": [{"id": "a", "tags": ["\xff"]}]}',
        b'{"servers": [{"id": "a", "b\\"c": 1}]}',
        b'{"servers": [{"id": "a", "deep": %s}]}' % nested(40),
        b'{"servers": [{"id": "a", "deep": %s}]}' % nested(100_000),
        msgspec.json.encode(told([{"id": "a", **{f"f{number}": 1 for number in range(600)}}])),
    ],
)
def test_a_page_that_no_api_gives_counts_as_no_answer(body: bytes) -> None:
    for layouts in (RowLayouts(), known()):
        with pytest.raises(PodSilent):
            changed(layouts, VIEW, [], body or b"{}")


def known() -> RowLayouts:
    """Return layouts that know the usual rows already."""
    layouts = RowLayouts()
    changed(layouts, VIEW, [{"id": "a", "name": "n", "tags": ["t"], "deep": []}])
    return layouts
