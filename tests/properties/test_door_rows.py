"""Rows of lists through a door: changed fast, and exactly as single answers are."""

from __future__ import annotations

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from innkeeper.domain.door import MARK, Json
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

ID, OTHER_ID = "0b1c", "9d8e"
NAMES = sorted(
    {*PROJECTS, *HIDDEN, *TEXTS, *WHOLE, *ZONES, *OF_USERS, MARK, "a:project_id", "name", "flavor"}
    | {f"{each}name" for each in HOSTS}
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
    st.none(), st.booleans(), st.integers(0, 9), st.sampled_from(["", "nova", "k-0123456789abcdef"])
)
VALUES = st.recursive(
    SCALARS | LINKS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=8,
)
ROWS = st.lists(
    st.dictionaries(st.sampled_from([*NAMES, "links"]), VALUES, max_size=8).map(
        lambda row: {"id": ID, **row}
    ),
    min_size=1,
    max_size=4,
)


@given(ROWS, st.booleans(), st.sampled_from([None, "top-image"]), st.sampled_from([None, "g"]))
def test_a_row_is_changed_as_an_answer_is(
    rows: list[dict[str, Json]], is_admin: bool, image_id: str | None, group: str | None
) -> None:
    view = DoorView(
        pod_of(1), "acme", "ann", image_id, group, "http://door/compute", is_admin=is_admin
    )
    expected = [view.change(deepcopy(each)) for each in rows]
    changed = RowView(view)
    assert [changed.change(each) for each in rows] == expected
