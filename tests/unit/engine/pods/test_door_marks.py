"""The marks by which a door finds resources that it has made in pods."""

from __future__ import annotations

from typing import Any

import pytest

from innkeeper.domain.door import MARK
from innkeeper.engine.pods.marks import ids_of, mark_of

UUID = "11111111-1111-4111-8111-111111111111"


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [({MARK: "m"}, "m"), ({"a": "b"}, None), (None, None), (5, None), (["m"], None)],
)
def test_only_metadata_that_are_an_object_have_a_mark(metadata: Any, expected: Any) -> None:
    resource = {"id": UUID, "metadata": metadata}
    assert mark_of(resource) == expected
    assert ids_of([resource], "m") == ([] if expected is None else [UUID])


def test_rows_without_a_usable_id_are_left_out() -> None:
    strange = [{"id": each} for each in (5, "../x", f"urn:uuid:{UUID}", UUID.replace("-", ""))]
    assert ids_of([*strange, [], None, {"id": UUID}]) == [UUID]
