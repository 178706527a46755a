"""Every story below this folder on every backend, each against a service of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from innkeeper.store.backends.catalogue import BACKENDS
from tests.scenarios.stories import Story, difference, read, tell
from tests.support.databases import DATABASES, MIGRATED
from tests.support.running import running

FOLDER = Path(__file__).parent
STORIES = tuple(read(FOLDER))


def label(story: Story) -> str:
    """How a test is named: its file, and the story in it."""
    return f"{story.path.relative_to(FOLDER).with_suffix('').as_posix()}: {story.name}"


@pytest.mark.parametrize("backend", DATABASES)
@pytest.mark.parametrize("story", STORIES, ids=label)
def test_story(story: Story, backend: str, tmp_path: Path) -> None:
    settings = {"database_url": MIGRATED[backend](tmp_path), **story.settings}
    with running(tmp_path, **settings) as service:
        tell(story, service)


def test_stories_are_told_on_every_backend() -> None:
    assert set(DATABASES) == set(BACKENDS)


def test_a_story_sees_differences() -> None:
    assert difference({"a": 1}, {"a": 1, "b": 2}, "body") is None
    assert difference({"a": [1, 2]}, {"a": [1, 2, 3]}, "body") is not None
    assert difference({"a": True}, {"a": 1}, "body") is not None
    assert difference({"a": None}, {}, "body") is not None
    assert difference({"a": "$uuid"}, {"a": "no uuid"}, "body") is not None
    assert difference({"a": "$any"}, {"a": [3]}, "body") is None
