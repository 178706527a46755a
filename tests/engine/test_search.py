"""The search thread: its answers, waiting and disconnected clients, and the service's end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.candidates import CandidateQuery, FoundCandidates, RequestGroup
from innkeeper.domain.errors import Invalid, Unavailable
from innkeeper.engine.search import WAIT_S, GoesOn, SearchThread
from innkeeper.random_ids import RandomIds
from innkeeper.store.transactions import Tx, ping
from tests.support.clouds import Cloud, cloud_in

WITHIN_S = 20.0
QUERY = CandidateQuery((RequestGroup(resources={"VCPU": 1}),))
NOTHING = FoundCandidates([], {})


class Puzzler:
    """An executor whose searches end only when they are cancelled."""

    def __init__(self) -> None:
        self.is_searching = threading.Event()
        self.loads = 0
        self.is_broken = False

    def load(self, tx: Tx) -> None:
        ping(tx)
        self.loads += 1
        if self.is_broken:
            raise RuntimeError("No providers can be read.")

    def follow(self, tx: Tx, query: CandidateQuery) -> Any:
        ping(tx)
        if not query.groups:
            raise Invalid("Nothing is asked for.")
        return query

    def find(
        self, table: Any, query: CandidateQuery, seed: int, goes_on: GoesOn
    ) -> FoundCandidates:
        assert table is query
        self.is_searching.set()
        while query.limit is None and goes_on():
            self.is_searching.wait(0.001)
        return NOTHING


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A store for the thread to read."""
    started = cloud_in(tmp_path)
    yield started
    started.close()


@pytest.fixture
def searcher() -> Puzzler:
    """The executor of the thread."""
    return Puzzler()


@pytest.fixture
def searching(cloud: Cloud, searcher: Puzzler) -> Iterator[SearchThread]:
    """A started search thread."""
    made = SearchThread(cloud.store, searcher, RandomIds())
    yield made
    made.stop()


def rendered(found: FoundCandidates) -> str:
    """The thread that renders an answer."""
    assert found is NOTHING
    return threading.current_thread().name


EASY = CandidateQuery(QUERY.groups, limit=1)


def test_answers_are_made_in_the_thread_that_searches(searching: SearchThread) -> None:
    found, name = asyncio.run(searching.find(EASY, rendered))
    assert found is NOTHING
    assert name.startswith("searching")


def test_a_wrong_query_is_refused(searching: SearchThread) -> None:
    with pytest.raises(Invalid, match="Nothing is asked for"):
        asyncio.run(searching.find(CandidateQuery(()), rendered))


def test_a_stopping_service_ends_the_search_and_starts_no_other(
    searching: SearchThread, searcher: Puzzler
) -> None:
    async def search_and_stop() -> list[Any]:
        puzzle = asyncio.ensure_future(searching.find(QUERY, rendered))
        behind = asyncio.ensure_future(searching.find(QUERY, rendered))
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, searcher.is_searching.wait, WITHIN_S)
        await asyncio.wait_for(loop.run_in_executor(None, searching.stop), WITHIN_S)
        return list(await asyncio.gather(puzzle, behind, return_exceptions=True))

    puzzle, behind = asyncio.run(search_and_stop())
    assert puzzle[0] is NOTHING
    assert isinstance(behind, Unavailable)
    with pytest.raises(Unavailable):
        asyncio.run(searching.find(EASY, rendered))


def test_a_disconnected_clients_search_frees_the_thread(
    searching: SearchThread, searcher: Puzzler
) -> None:
    async def give_up() -> None:
        first = asyncio.ensure_future(searching.find(EASY, rendered))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(give_up())
    assert asyncio.run(searching.find(EASY, rendered))[0] is NOTHING


def test_a_search_that_waited_too_long_is_refused(
    searching: SearchThread, searcher: Puzzler
) -> None:
    long_ago_s = time.perf_counter() - WAIT_S - 1.0
    with pytest.raises(Unavailable):
        searching._search(EASY, rendered, long_ago_s)
    assert not searcher.is_searching.is_set()


def test_a_failed_first_read_of_providers_is_logged_and_retried(
    cloud: Cloud, searcher: Puzzler
) -> None:
    searcher.is_broken = True
    searching = SearchThread(cloud.store, searcher, RandomIds())
    with capture_logs() as logs:
        searching.start()
        assert asyncio.run(searching.find(EASY, rendered))[0] is NOTHING
        searching.stop()
    assert searcher.loads == 1
    assert "providers_unread" in [each["event"] for each in logs]
