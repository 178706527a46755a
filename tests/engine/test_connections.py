"""Every writer and every reader gets a connection, however many threads read."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from innkeeper import wiring
from innkeeper.domain.slices import Serving, Settings, Storing
from innkeeper.engine.commands import Write
from innkeeper.engine.readers import ReaderThreads
from innkeeper.engine.search import SearchThread
from innkeeper.engine.writer import Writer
from innkeeper.random_ids import RandomIds
from innkeeper.store import schema
from innkeeper.store.transactions import Store, Tx, ping
from tests.support.clouds import NOW, cloud_in

WITHIN_S = 20.0
AT_ONCE_S = 2.0
"""Much longer than a commit, and much shorter than the timeout of a connection."""
READERS = 3
SETTINGS = Settings(serving=Serving(reader_threads=READERS))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with the service's settings."""
    storing = Storing(data_dir=str(tmp_path / "data"), busy_timeout_s=WITHIN_S)
    opened = wiring.connect(Settings(serving=SETTINGS.serving, storing=storing))
    schema.upgrade(opened, NOW)
    yield opened
    opened.dispose()


class LongRead:
    """A read that lasts until it is released; counts the threads in it."""

    def __init__(self) -> None:
        self.inside = threading.Semaphore(0)
        self.end = threading.Event()

    def __call__(self, tx: Tx, *_: Any) -> None:
        ping(tx)
        self.inside.release()
        assert self.end.wait(WITHIN_S)

    load = __call__
    """Takes the place of a search thread that reads all providers."""


def test_a_write_succeeds_while_all_reader_threads_read(store: Store, tmp_path: Path) -> None:
    long_read = LongRead()
    readers = ReaderThreads(store, READERS)
    executor: Any = long_read
    searching = SearchThread(store, executor, RandomIds())
    cloud = cloud_in(tmp_path)
    writer = Writer(store, cloud.executor)
    beside = ThreadPoolExecutor(2)

    def read() -> None:
        with store.read() as tx:
            long_read(tx)

    async def fill_and_write() -> float:
        try:
            waiting = [readers.run(long_read) for _ in range(READERS + 1)]
            reading = asyncio.gather(*waiting)
            searching.start()
            # The readers are the worker, and the decision thread while it reads for a batch.
            others = [beside.submit(read) for _ in range(2)]
            for _ in range(READERS + 1 + len(others)):
                assert await asyncio.to_thread(long_read.inside.acquire, timeout=WITHIN_S / 4)
            started_s = time.perf_counter()
            await writer.submit(Write(ping))
            return time.perf_counter() - started_s
        finally:
            long_read.end.set()
            await reading

    writer.start()
    try:
        assert asyncio.run(fill_and_write()) < AT_ONCE_S
    finally:
        long_read.end.set()
        writer.stop(WITHIN_S)
        searching.stop()
        readers.stop()
        beside.shutdown()
        cloud.close()


def test_a_write_succeeds_while_more_threads_read_than_connections_exist(store: Store) -> None:
    long_read = LongRead()
    connections = READERS + wiring.READERS_BESIDE
    many = 2 * connections

    def read() -> None:
        with store.read() as tx:
            long_read(tx)

    with ThreadPoolExecutor(many) as pool:
        for _ in range(many):
            pool.submit(read)
        try:
            for _ in range(connections):
                assert long_read.inside.acquire(timeout=WITHIN_S)
            started_s = time.perf_counter()
            with store.write() as tx:
                ping(tx)
            assert time.perf_counter() - started_s < AT_ONCE_S
        finally:
            long_read.end.set()
