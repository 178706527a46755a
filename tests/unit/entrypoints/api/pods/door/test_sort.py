"""The sort keys of lists at a door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from innkeeper.domain.door import SERVER, VOLUME
from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.pods.door.forwarding import sort_of

Query = Mapping[str, Sequence[str]]


@pytest.mark.parametrize(
    ("kind", "query", "expected"),
    [
        (SERVER, {}, {"created_at": True, "uuid": True}),
        (SERVER, {"sort_dir": ["asc"]}, {"created_at": False, "uuid": False}),
        (
            SERVER,
            {"sort_key": ["display_name"], "sort_dir": ["asc"]},
            {"display_name": False, "created_at": False, "uuid": False},
        ),
        (
            SERVER,
            {"sort_key": ["display_name", "vm_state"], "sort_dir": ["asc"]},
            {"display_name": False, "vm_state": False, "created_at": False, "uuid": False},
        ),
        (
            SERVER,
            {"sort_key": ["uuid", "created_at", "uuid"], "sort_dir": ["desc", "asc", "asc"]},
            {"uuid": True, "created_at": False},
        ),
        (
            VOLUME,
            {"sort": ["size:asc,name"]},
            {"size": False, "name": True, "created_at": False, "id": False},
        ),
        (
            VOLUME,
            {"sort_key": ["size"], "sort_dir": ["desc"]},
            {"size": True, "created_at": True, "id": True},
        ),
    ],
)
def test_equal_rows_are_sorted_by_age_and_id(
    kind: str, query: Query, expected: Mapping[str, bool]
) -> None:
    assert sort_of(query, kind) == list(expected.items())


@pytest.mark.parametrize(
    "query", [{"sort_dir": ["asc", "asc"]}, {"sort_key": ["uuid"], "sort_dir": ["asc", "desc"]}]
)
def test_more_directions_than_keys_are_refused(query: Query) -> None:
    with pytest.raises(Invalid):
        sort_of(query, SERVER)
