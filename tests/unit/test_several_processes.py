"""A service's repeated writes are counted by its log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from benchmarks.several_processes import repeated
from innkeeper.domain.slices import Serving
from innkeeper.entrypoints.api.logs import set_up_logs


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """The file of a service's log."""
    before = structlog.get_config()
    path = tmp_path / "log"
    with path.open("w", encoding="utf-8", buffering=1) as stream:
        set_up_logs(Serving(), stream)
        yield path
    structlog.configure(**before)


def say(event: str, **facts: Any) -> None:
    structlog.get_logger("test").warning(event, **facts)


def test_a_write_counts_once_and_a_batch_by_its_steps(log: Path) -> None:
    say("request", path="/placement/allocations", status=204)
    assert repeated(log) == 0
    say("write_overtaken", cause="Another transaction changed the same rows concurrently.")
    say("batch_repeated", steps=16, error="deadlock, event=unknown")
    say("batch_tried_again", steps=3, error="conflict")
    assert repeated(log) == 1 + 16 + 3


def test_what_was_said_before_is_not_counted(log: Path) -> None:
    say("batch_repeated", steps=16, error="conflict")
    begin = log.stat().st_size
    say("write_overtaken", cause="conflict")
    assert repeated(log, begin) == 1
