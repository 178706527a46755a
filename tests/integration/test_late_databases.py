"""Services that start before their database: they wait, and log the reason."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from innkeeper.commands import NOT_THERE
from tests.support.servers import mariadb, postgresql
from tests.support.servers.mariadb import Mariadb
from tests.support.servers.postgresql import Postgresql
from tests.support.service_processes import Started, end, started, wait_until_ready

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]
WITHIN_S = 30.0
PASSWORD = "a-word-for-nobody"
WRONG_SETTINGS = 2


def of_postgresql() -> Postgresql:
    return Postgresql(**postgresql.FAST)


def of_mariadb() -> Mariadb:
    return Mariadb(**mariadb.FAST)


SERVERS: Mapping[str, Callable[[], Postgresql | Mariadb]] = {
    "postgresql": of_postgresql,
    "mariadb": of_mariadb,
}


OPTIONS: Mapping[type, tuple[str, ...]] = {Postgresql: ("--workers", "2"), Mariadb: ()}
"""One service with a supervisor, and one without."""


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Postgresql | Mariadb]:
    """A database server only for these tests; it runs whenever a test begins."""
    made = SERVERS[request.param]()
    made.start()
    yield made
    made.close()


@contextmanager
def serving(folder: Path, url: str, *options: str, wait_s: float = WITHIN_S) -> Iterator[Started]:
    """A service on the database at ``url``, whether that is available or not."""
    given = {"auth": "none", "database_url": url, "database_wait_s": str(wait_s)}
    service = started(folder, given, *options)
    try:
        yield service
    finally:
        end(service)


def eventually(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def awaited(service: Started) -> int:
    """How often the service has logged that it waits."""
    return service.log.read_text().count("event=database_awaited")


def with_password(url: str, password: str) -> str:
    return url.replace("@", f":{password}@", 1)


def test_a_service_waits_for_its_database(tmp_path: Path, server: Postgresql | Mariadb) -> None:
    url = server.fresh()
    if isinstance(server, Postgresql):
        # MariaDB rejects a login with a password if the user has none.
        url = with_password(url, PASSWORD)
    server.stop()
    try:
        with serving(tmp_path, url, *OPTIONS[type(server)]) as service:
            eventually(lambda: awaited(service) > 1)
            assert not service.is_ready()
            server.start()
            wait_until_ready(service)
            assert PASSWORD not in service.log.read_text()
            assert service.stop() == 0
    finally:
        server.stop()
        server.start()


def test_a_waiting_start_ends_on_a_signal(tmp_path: Path, server: Postgresql | Mariadb) -> None:
    url = server.fresh()
    server.stop()
    try:
        with serving(tmp_path, url, *OPTIONS[type(server)]) as service:
            eventually(lambda: awaited(service) > 0)
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(WITHIN_S) == 0
            assert service.log.read_text().count("Traceback") == 0
    finally:
        server.start()


def test_a_database_that_does_not_come_is_given_up(
    tmp_path: Path, server: Postgresql | Mariadb
) -> None:
    url = server.fresh()
    server.stop()
    try:
        with serving(tmp_path, url, wait_s=4.0) as service:
            assert service.process.wait(WITHIN_S) == NOT_THERE
            *before, last = service.log.read_text().splitlines()
    finally:
        server.start()
    assert before
    assert {"event=database_awaited" in each for each in before} == {True}
    assert last.startswith("innkeeper: Cannot use the database: ")
    assert last.endswith(" Gave up after 4 s.")


def refused(folder: Path, url: str) -> str:
    """Return the one line of output of a service that refuses to start at once."""
    with serving(folder, url) as service:
        assert service.process.wait(WITHIN_S) == WRONG_SETTINGS
        (line,) = service.log.read_text().splitlines()
    assert line.startswith("innkeeper: Cannot use the database: ")
    return line


def test_a_refused_login_ends_the_start_at_once(
    tmp_path: Path, server: Postgresql | Mariadb
) -> None:
    url = server.fresh()
    line = refused(tmp_path / "1", url.rpartition("/")[0] + "/nowhere")
    assert "nowhere" in line
    user = "root" if isinstance(server, Mariadb) else "postgres"
    stranger = refused(tmp_path / "2", url.replace(f"{user}@", f"stranger:{PASSWORD}@"))
    assert "stranger" in stranger
    assert PASSWORD not in stranger


def test_a_wrong_password_ends_the_start_at_once(
    tmp_path: Path, server: Postgresql | Mariadb
) -> None:
    url = server.fresh()
    if isinstance(server, Mariadb):
        line = refused(tmp_path, with_password(url, PASSWORD))
        assert "Access denied" in line
    else:
        ask_for_password(server, "guarded")
        line = refused(tmp_path, url.replace("postgres@", f"guarded:{PASSWORD}@"))
        assert "password authentication failed" in line
    assert PASSWORD not in line


def ask_for_password(server: Postgresql, user: str) -> None:
    """Create a user with a password."""
    rules = server.folder / "data" / "pg_hba.conf"
    rules.write_text(
        f"host all {user} 127.0.0.1/32 scram-sha-256\n" + rules.read_text(encoding="utf-8")
    )
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'another'")
        connection.execute("SELECT pg_reload_conf()")
