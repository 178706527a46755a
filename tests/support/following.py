"""Runs two services on one database in this process. Clients use the one that does not lead."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from innkeeper.engine import metrics
from tests.support.running import Running, running

FORWARDS_WITHIN_S = 30.0
LOOKS_AGAIN_S = 0.05


@contextmanager
def following(data_dir: Path, **settings: Any) -> Iterator[Running]:
    """Serve until the block ends, through a process that forwards its writes to the leader."""
    settings |= {"database_is_shared": True}
    with running(data_dir, **settings) as leader:
        _wait(leader, "is_leading")
        with running(data_dir, **settings) as follower:
            _wait(follower, "is_forwarding")
            before = _kept()
            yield follower
            assert _kept() == before, "a write was not forwarded"


def _wait(service: Running, state: str) -> None:
    leadership = service.service.site.leadership
    assert leadership is not None
    deadline_s = time.monotonic() + FORWARDS_WITHIN_S
    while not getattr(leadership, state):
        assert time.monotonic() < deadline_s, state
        time.sleep(LOOKS_AGAIN_S)


def _kept() -> float:
    """How many writes were not forwarded."""
    (found,) = (
        sample.value
        for family in metrics.FORWARDED.collect()
        for sample in family.samples
        if sample.name.endswith("_total") and sample.labels["outcome"] == "kept"
    )
    return float(found)
