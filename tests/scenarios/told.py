"""The stories below this folder; each runs against a service of its own."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.scenarios.stories import Story, read, tell
from tests.support.databases import MIGRATED
from tests.support.running import running

FOLDER = Path(__file__).parent
STORIES = tuple(read(FOLDER))


def label(story: Story) -> str:
    """Return a test's name: its file, and the story in it."""
    return f"{story.path.relative_to(FOLDER).with_suffix('').as_posix()}: {story.name}"


each_story = pytest.mark.parametrize("story", STORIES, ids=label)
"""Parametrizes the tests of one backend. Each backend has its own file, and files run in
parallel."""


def tell_on(backend: str, story: Story, folder: Path) -> None:
    """Run a story on a database of this kind."""
    with MIGRATED[backend](folder) as url:
        settings = {"database_url": url, **story.settings}
        with running(folder, **settings) as service, ExitStack() as others:
            zones = {
                name: others.enter_context(running(folder / name, **given))
                for name, given in story.zones.items()
            }
            tell(story, service, zones)
