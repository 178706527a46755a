"""Every story on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.stories import Story
from tests.scenarios.told import each_story, tell_on


@each_story
def test_story(story: Story, tmp_path: Path) -> None:
    tell_on("postgresql", story, tmp_path)
