"""The cloud that most tests of the writer share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clouds import Cloud, cloud_in, reported


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of one host."""
    started = cloud_in(tmp_path, reported("a"))
    yield started
    started.close()
