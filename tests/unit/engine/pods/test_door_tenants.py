"""A project of the door uses only the project in a pod that has its name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from innkeeper.clients.pods import PodAnswer, PodSilent
from innkeeper.engine.pods.tenants import id_of_named

MINE = {"id": "4a1c9f0e4c4e4b3c9a3b1de6a1d5f0aa", "name": "mine"}
OTHER = {"id": "7e0b8a5c1d2f4e6fa9c0b1d2e3f4a5b6", "name": "other"}


def answer(body: Any) -> PodAnswer:
    """Return an answer of a pod."""
    return PodAnswer(200, {}, msgspec.json.encode(body))


@pytest.mark.parametrize(
    "body",
    [
        {"project": MINE},
        {"projects": [MINE]},
        {"projects": [OTHER, MINE]},
        {"projects": [3, {"name": "mine"}, {**MINE, "name": "MINE"}]},
    ],
)
def test_the_id_is_of_the_one_with_the_name(body: Any) -> None:
    assert id_of_named(answer(body), "project", "mine") == MINE["id"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"projects": []},
        {"projects": [OTHER]},
        {"project": OTHER},
        {"project": None, "projects": [MINE]},
        {"projects": {"id": MINE["id"]}},
        {"projects": [{**MINE, "name": None}]},
        {"projects": [{**MINE, "id": "../users"}]},
        {"projects": [{**MINE, "id": "-"}]},
        {"error": {"code": 500}},
    ],
)
def test_any_other_answer_gives_no_id(body: Any) -> None:
    with pytest.raises(PodSilent):
        id_of_named(answer(body), "project", "mine")
