"""Questions of a door to several pods at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from structlog.testing import capture_logs

from innkeeper.domain.pods import PodHealth
from innkeeper.engine.lateness import Lateness
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.lookups import Lookups
from tests.support.pod_rows import pod_of


def test_a_pod_that_is_down_is_missing_and_not_logged_each_time() -> None:
    nobody: Any = None
    clouds = PodClouds(nobody, nobody, nobody, nobody, nobody, nobody, nobody, Lateness(1.0))
    down = replace(pod_of(1), health=PodHealth(is_up=False))
    with capture_logs() as logs:
        told, missing = asyncio.run(Lookups(clouds, nobody).ask([down], None, "compute", "/", {}))
    assert (told, missing) == ([], [down])
    assert logs == []
