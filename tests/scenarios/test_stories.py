"""Stories run on every backend, and fail if an answer differs."""

from __future__ import annotations

from pathlib import Path

from innkeeper.store.backends.catalogue import BACKENDS
from tests.scenarios.stories import difference
from tests.support.databases import DATABASES

FOLDER = Path(__file__).parent


def test_every_backend_runs_every_story() -> None:
    assert set(DATABASES) == set(BACKENDS)
    told = {path.stem.removeprefix("test_stories_") for path in FOLDER.glob("test_stories_*")}
    assert told == set(BACKENDS)


def test_a_story_sees_differences() -> None:
    assert difference({"a": 1}, {"a": 1, "b": 2}, "body") is None
    assert difference({"a": [1, 2]}, {"a": [1, 2, 3]}, "body") is not None
    assert difference({"a": True}, {"a": 1}, "body") is not None
    assert difference({"a": None}, {}, "body") is not None
    assert difference({"a": "$uuid"}, {"a": "no uuid"}, "body") is not None
    assert difference({"a": "$any"}, {"a": [3]}, "body") is None
