"""The fast decoder for bodies that name servers accepts what the schema accepts, or defers to
it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import jsonschema
import msgspec
import pytest

from innkeeper.entrypoints.api.zones import named_servers, schemas

IDS = [str(uuid4()) for _ in range(3)]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_plain_bodies_are_decoded(count: int) -> None:
    body = {"servers": IDS[:count]}
    jsonschema.validate(body, schemas.SERVERS)
    assert named_servers.decode(msgspec.json.encode(body)) == body


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"servers": None},
        {"servers": "a"},
        {"servers": [7]},
        {"servers": [IDS[0].upper()]},
        {"servers": [IDS[0] + "\n"]},
        {"servers": [IDS[0].replace("-", "")]},
        {"servers": [IDS[0], IDS[0]]},
        {"servers": [str(uuid4()) for _ in range(1001)]},
        {"servers": IDS, "more": 1},
    ],
)
def test_all_other_bodies_are_left_to_the_schema(body: Any) -> None:
    assert named_servers.decode(msgspec.json.encode(body)) is None
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, schemas.SERVERS)


def test_what_is_no_json_is_left_to_the_schema() -> None:
    for raw in (b"", b"{", b'{"servers": ["\xff"]}', b"[" * 10_000):
        assert named_servers.decode(raw) is None
