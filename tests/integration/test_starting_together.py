"""Several services find an empty database at the same moment: one creates its schema."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from innkeeper.store import schema
from innkeeper.store.backends import catalogue
from innkeeper.store.tables.placement import resource_classes, traits
from innkeeper.store.transactions import Store
from tests.support.databases import DATABASES
from tests.support.servers import galera
from tests.support.service_processes import UNLIMITED, Started, end, started, wait_until_ready

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
TOGETHER = 3
APART_S = (0.0, 0.0, 0.2, 0.4, 0.6, 0.8)
BUSY_S = 5.0


def in_other_orders(url: str) -> list[str]:
    """URLs of the same nodes, each with another node first. A process tries them in order."""
    head, _, rest = url.partition("@")
    listed, _, database = rest.partition("/")
    hosts = listed.split(",")
    return [
        f"{head}@{','.join(hosts[first:] + hosts[:first])}/{database}"
        for first in range(len(hosts))
    ]


def of_cluster(_: Path) -> list[str]:
    return in_other_orders(galera.shared().fresh())


def of_one(kind: str) -> Callable[[Path], list[str]]:
    return lambda folder: [DATABASES[kind](folder)] * TOGETHER


PLACES: Mapping[str, Callable[[Path], list[str]]] = {
    **{kind: of_one(kind) for kind in DATABASES},
    "galera": of_cluster,
}
"""By the kind of database: makes an empty database, and returns a URL for each process."""


@pytest.fixture(params=PLACES)
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    return PLACES[request.param](tmp_path)


@pytest.fixture
def opened() -> Iterator[Callable[[str], Store]]:
    """Opens databases as a process does."""
    with ExitStack() as stack:

        def open_store(url: str) -> Store:
            backend = catalogue.of_url(url)
            engines = backend.engines(url, readers_max=2, busy_timeout_s=BUSY_S)
            store = Store(backend, engines)
            stack.callback(store.dispose)
            return store

        yield open_store


def test_one_process_creates_the_schema_while_others_wait(
    urls: list[str], opened: Callable[[str], Store]
) -> None:
    stores = [opened(urls[number % len(urls)]) for number in range(len(APART_S))]
    pause = threading.Event()

    def begin(store: Store, apart_s: float) -> bool:
        pause.wait(apart_s)
        return schema.upgrade(store, NOW)

    with ThreadPoolExecutor(len(stores)) as pool:
        moved = list(pool.map(begin, stores, APART_S))
    assert moved.count(True) == 1
    for each in stores:
        with each.read() as tx:
            assert schema.revision(tx) == schema.newest_revision()
            for table in (resource_classes, traits):
                names = list(tx.execute(sa.select(table.c.name)).scalars())
                assert len(set(names)) == len(names)
        # All services can write.
        with each.write() as tx:
            tx.execute(traits.update().values(updated_at=NOW))


@pytest.mark.parametrize("kind", ["postgresql", "galera"])
def test_services_that_start_together_all_serve(tmp_path: Path, kind: str) -> None:
    services: list[Started] = []
    with ExitStack() as stack:
        for number, url in enumerate(PLACES[kind](tmp_path)):
            given = {"database_url": url, "encryption_key_file": str(tmp_path / "key"), **UNLIMITED}
            services.append(started(tmp_path / str(number), given))
            stack.callback(end, services[-1])
        for each in services:
            wait_until_ready(each)
        folders = [tmp_path / str(number) for number in range(len(services))]
        assert [(each / "clouds.yaml").exists() for each in folders].count(True) == 1
        assert [each.stop() for each in services] == [0] * len(services)
