"""A thread without progress is detected, unless it waits for the database."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import sqlalchemy as sa

from innkeeper.entrypoints.worker.heartbeat import (
    BEAT_S,
    STUCK,
    WELL,
    Heartbeat,
    StuckThreadDetector,
)
from innkeeper.store.prepared import Prepared

LOOKS = 3


@dataclass(slots=True)
class Work:
    """A thread, and its reported progress."""

    thread_id: int | None
    progress: int | None = 1


@pytest.fixture
def release() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


def begun(wait: Callable[[], object]) -> Work:
    """Start a thread that waits in the given way."""
    is_there = threading.Event()

    def run() -> None:
        is_there.set()
        wait()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    is_there.wait()
    return Work(thread.ident)


def looks(detector: StuckThreadDetector, count: int) -> list[bool]:
    return [detector.look() for _ in range(count)]


def test_a_thread_without_progress_is_stuck(release: threading.Event) -> None:
    work = begun(release.wait)
    detector = StuckThreadDetector(work, LOOKS * BEAT_S)
    # Later looks are compared with the first look.
    assert looks(detector, LOOKS + 2) == [False] * LOOKS + [True, True]
    assert detector.is_stuck
    work.progress = 2
    assert looks(detector, 2) == [False, False]
    assert not detector.is_stuck


def test_an_idle_thread_is_not_stuck(release: threading.Event) -> None:
    work = begun(release.wait)
    work.progress = None
    assert not any(looks(StuckThreadDetector(work, LOOKS * BEAT_S), 3 * LOOKS))


@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_thread_that_waits_for_the_database_is_not_stuck(
    release: threading.Event, is_prepared: bool
) -> None:
    engine = sa.create_engine("sqlite://", connect_args={"check_same_thread": False})
    is_requested = threading.Event()

    def answer(_: int) -> int:
        is_requested.set()
        release.wait()
        return 1

    def ask() -> None:
        with engine.connect() as connection:
            raw = connection.connection.dbapi_connection
            assert raw is not None
            raw.create_function("answer", 1, answer)
            question = sa.select(sa.func.answer(sa.bindparam("number", type_=sa.Integer)))
            if is_prepared:
                Prepared(question).rows(connection, {"number": 1})
            else:
                connection.execute(question, {"number": 1})
        engine.dispose()

    work = begun(ask)
    is_requested.wait()
    assert not any(looks(StuckThreadDetector(work, LOOKS * BEAT_S), 3 * LOOKS))


def test_each_beat_is_written_to_the_pipe(release: threading.Event) -> None:
    hearing, telling = os.pipe()
    heartbeat = Heartbeat(StuckThreadDetector(begun(release.wait), LOOKS * BEAT_S), telling)
    for _ in range(LOOKS + 1):
        heartbeat.beat()
    assert os.read(hearing, 100) == LOOKS * WELL + STUCK
    os.close(hearing)
    # No heartbeat is received any more.
    heartbeat.beat()
    os.close(telling)
