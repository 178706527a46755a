"""The parser of Accept headers."""

from __future__ import annotations

import pytest

from innkeeper.entrypoints.api.content_types import JSON, accepts


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "*/*",
        "application/json",
        "APPLICATION/JSON",
        "application/*",
        "text/plain, application/json;q=0.1",
        "text/plain;q=0.9, */*;q=0.1",
    ],
)
def test_these_accept_json(header: str | None) -> None:
    assert accepts(header, JSON)


@pytest.mark.parametrize(
    "header",
    ["text/plain", "application/xml", "*/*, application/json;q=0", "application/json;q=high"],
)
def test_these_do_not_accept_json(header: str) -> None:
    assert not accepts(header, JSON)
