"""Which project ids pclouds accept."""

from __future__ import annotations

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.systems.pclouds.aggregates import demand_project


@pytest.mark.parametrize(
    "project_id",
    [
        "9f0c3cf1a3a54c6c8d4c1a4f0f2f4a55",
        "9f0c3cf1-a3a5-4c6c-8d4c-1a4f0f2f4a55",
        "a",
        "club_no.1",
        "..a",
        "hosts",
        "auto_placement",
        "the lab",
        "müller",
        "y" * 248,
    ],
)
def test_valid_project_ids(project_id: str) -> None:
    demand_project(project_id)


@pytest.mark.parametrize(
    "project_id",
    [
        "",
        ".",
        "..",
        "...",
        ". .",
        " ",
        " a",
        "a ",
        "\u00a0a",
        "a/b",
        "/",
        "a\nb",
        "a\n",
        "a\x7f",
        "a\x85b",
        "a\u200bb",
        "a\u2028b",
        "a\ufffd",
        "\ud800",
        "name",
        "host:a",
        "y" * 249,
    ],
)
def test_invalid_project_ids(project_id: str) -> None:
    with pytest.raises(Invalid):
        demand_project(project_id)
