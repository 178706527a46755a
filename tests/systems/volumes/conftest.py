"""A cloud for tests of volumes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clouds import cloud_in, reported
from tests.support.volume_clouds import VolumeCloud


@pytest.fixture
def it(tmp_path: Path) -> Iterator[VolumeCloud]:
    """Two hosts of 100 GiB each."""
    made = VolumeCloud(cloud_in(tmp_path, reported("h1"), reported("h2")))
    yield made
    made.cloud.reread()
    made.cloud.judge()
    made.cloud.close()
