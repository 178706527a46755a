"""Three Galera nodes, one of which takes all writes, during all failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pymysql
import pytest

from innkeeper.domain.errors import Busy, Unavailable
from innkeeper.store import schema
from innkeeper.store.backends import catalogue
from innkeeper.store.transactions import Store
from tests.integration.failing_over import survive
from tests.scenarios.stories import read, tell
from tests.simulation.programs import wait_until
from tests.store.test_claims import (  # noqa: F401 - told again, in a cluster
    cloud,
    test_every_claim_and_release_is_in_the_feed,
    test_racing_writers_do_not_overcommit,
)
from tests.support.running import running
from tests.support.servers import galera
from tests.support.servers.galera import Galera, Node

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
STORIES_FOLDER = Path(__file__).parents[1] / "scenarios"
STORY = "compute/servers_boot.yaml"
BUSY_S = 2.0
GOES_ON_WITHIN_S = 60.0
NOT_PREPARED = 1047

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Galera]:
    """A cluster whose nodes are all healthy when a test begins."""
    made = galera.shared()
    yield made
    made.wait_whole()


@contextmanager
def opening(url: str) -> Iterator[Callable[[], Store]]:
    """Opens the same database repeatedly, as several processes do."""
    stores: list[Store] = []

    def open_store() -> Store:
        backend = catalogue.of_url(url)
        engines = backend.engines(url, readers_max=2, busy_timeout_s=BUSY_S)
        stores.append(Store(backend, engines))
        return stores[-1]

    schema.upgrade(open_store(), NOW)
    yield open_store
    for store in stores:
        store.dispose()


@pytest.fixture
def opened(nodes: Galera) -> Iterator[Callable[[], Store]]:
    """Opens a database with an empty schema."""
    with opening(nodes.fresh()) as open_store:
        yield open_store


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    """A store with an empty schema."""
    return opened()


@pytest.fixture(scope="module")
def shared(nodes: Galera) -> Iterator[Callable[[], Store]]:
    """Opens the database that is shared by all tests that only count transactions."""
    with opening(nodes.fresh()) as open_store:
        yield open_store


def port_of(store: Store) -> int:
    """The port of the node where a write transaction runs."""
    with store.write() as tx:
        return int(tx.exec_driver_sql("SELECT @@port").scalar_one())


def number(store: Store) -> int:
    """The number of transactions."""
    with store.read() as tx:
        return int(tx.exec_driver_sql("SELECT number FROM write_order").scalar_one())


def goes_on(store: Store) -> bool:
    """Whether a write transaction succeeds at this moment."""
    with suppress(Unavailable):
        port_of(store)
        return True
    return False


def writer_of(nodes: Galera, store: Store) -> Node:
    """The writer node."""
    port = port_of(store)
    return next(each for each in nodes.nodes if each.port == port)


def database_of(store: Store) -> str:
    """The database's name, which is the same on each node."""
    name = store.engines.writing.url.database
    assert name is not None
    return name


def name_as_writer(node: Node, database: str) -> None:
    """Make a node the writer, as a process does that finds the writer node gone."""
    with node.connect(database) as raw, raw.cursor() as cursor:
        named = f"127.0.0.1:{node.port}"
        cursor.execute("UPDATE write_order SET number = number + 1, writer = %s", (named,))


def test_all_processes_write_to_one_node(shared: Callable[[], Store]) -> None:
    assert len({port_of(shared()) for _ in range(3)}) == 1


def test_a_commit_through_an_old_writer_node_is_refused(
    nodes: Galera, shared: Callable[[], Store]
) -> None:
    store = shared()
    writer = writer_of(nodes, store)
    other = next(each for each in nodes.nodes if each is not writer)
    before = number(store)
    with pytest.raises((Busy, Unavailable)), store.write():
        # Another process considers the writer node gone, while a transaction is open on that node.
        name_as_writer(other, database_of(store))
    assert number(store) == before + 1
    wait_until(lambda: goes_on(store), "the other node", GOES_ON_WITHIN_S)
    assert writer_of(nodes, store) is other


def test_a_node_that_is_cut_off_takes_no_writes(nodes: Galera, shared: Callable[[], Store]) -> None:
    first, second = shared(), shared()
    writer = writer_of(nodes, first)
    port_of(second)
    writer.cut_off()
    try:
        for each in (first, second):
            wait_until(partial(goes_on, each), "another node", GOES_ON_WITHIN_S)
            assert port_of(each) != writer.port
        with (
            writer.connect(database_of(first)) as raw,
            raw.cursor() as cursor,
            pytest.raises(pymysql.OperationalError) as refused,
        ):
            cursor.execute("UPDATE write_order SET number = number + 1")
        assert refused.value.args[0] == NOT_PREPARED
        assert number(first) == number(second)
    finally:
        writer.reconnect()
        nodes.wait_whole()
    count = number(first)
    for node in nodes.nodes:
        with node.connect(database_of(first)) as raw, raw.cursor() as cursor:
            cursor.execute("SET SESSION wsrep_sync_wait = 1")
            cursor.execute("SELECT number FROM write_order")
            assert cursor.fetchone() == (count,)


def test_processes_leave_a_node_that_is_not_synced(
    nodes: Galera, shared: Callable[[], Store]
) -> None:
    store = shared()
    writer = writer_of(nodes, store)
    set_desynced(writer, "ON")
    try:
        wait_until(lambda: goes_on(store) and port_of(store) != writer.port, "another node")
    finally:
        set_desynced(writer, "OFF")


def set_desynced(node: Node, value: str) -> None:
    """Set a node's state to that of a state transfer's donor."""
    with node.connect() as raw, raw.cursor() as cursor:
        cursor.execute(f"SET GLOBAL wsrep_desync = {value}")


def test_processes_leave_a_hung_node(nodes: Galera, shared: Callable[[], Store]) -> None:
    store = shared()
    writer = writer_of(nodes, store)
    writer.pause()
    try:
        wait_until(lambda: goes_on(store), "another node", GOES_ON_WITHIN_S)
        assert port_of(store) != writer.port
    finally:
        writer.resume()
        nodes.wait_whole()
    assert goes_on(store)


def test_a_scenario_passes_on_a_cluster(nodes: Galera, tmp_path: Path) -> None:
    story = next(each for each in read(STORIES_FOLDER) if each.path.match(STORY))
    with running(tmp_path, database_url=nodes.fresh(), **story.settings) as service:
        tell(story, service)


def test_a_service_survives_the_death_of_its_node(nodes: Galera, tmp_path: Path) -> None:
    url = nodes.fresh()
    struck: list[Node] = []

    def strike() -> None:
        with nodes.nodes[0].connect(url.rpartition("/")[2]) as raw, raw.cursor() as cursor:
            cursor.execute("SELECT writer FROM write_order")
            row = cursor.fetchone()
        assert row is not None
        port = int(row[0].rpartition(":")[2])
        struck.extend(each for each in nodes.nodes if each.port == port)
        struck[0].kill()

    try:
        survive(tmp_path, url, strike)
    finally:
        for each in struck:
            nodes.restart(each)
    nodes.wait_whole()
