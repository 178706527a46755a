"""The requirements for MariaDB servers, and the errors of servers that do not meet them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog

from innkeeper.domain.errors import Busy, Collided, Conflict, Unavailable
from innkeeper.store import schema
from innkeeper.store.backends.galera import NodeConnection
from innkeeper.store.backends.mariadb import Mariadb
from innkeeper.store.tables.metadata import METADATA
from innkeeper.store.transactions import Store, step
from tests.support.authorities import Authority
from tests.support.servers import mariadb, packages

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def opened(url: str) -> Store:
    """A store without connections yet."""
    backend = Mariadb()
    return Store(backend, backend.engines(url, readers_max=1, busy_timeout_s=5.0))


@pytest.fixture
def url() -> str:
    """An empty database."""
    return mariadb.shared().fresh()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """An empty database, opened."""
    made = opened(url)
    yield made
    made.dispose()


def test_every_table_has_a_primary_key() -> None:
    # Galera neither deletes nor certifies rows of a table without a primary key.
    assert [each.name for each in METADATA.tables.values() if not each.primary_key.columns] == []


def test_a_collation_that_ignores_case_is_rejected(store: Store) -> None:
    schema.upgrade(store, NOW)
    with store.write() as tx:
        tx.exec_driver_sql(
            "ALTER TABLE traits CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
        )
    with pytest.raises(Conflict, match="traits of the database has the collation utf8mb4_gen"):
        schema.upgrade(store, NOW)


def test_unsafe_settings_of_a_server_are_logged_once(store: Store) -> None:
    with structlog.testing.capture_logs() as told:
        for _ in range(2):
            with store.read():
                pass
            store.engines.reading.dispose()
    unsafe = {each["setting"]: each["value"] for each in told}
    assert unsafe == {"innodb_flush_log_at_trx_commit": "0", "innodb_doublewrite": "OFF"}
    assert len(told) == len(unsafe)


def test_several_addresses_without_a_cluster_are_rejected(url: str) -> None:
    port = mariadb.shared().port
    store = opened(url.replace(f"127.0.0.1:{port}", f"127.0.0.1:{port},localhost:{port}"))
    with pytest.raises(Unavailable, match="belongs to no cluster"), store.read():
        pass
    store.dispose()


def test_a_deadlock_within_a_step_is_a_collision(store: Store) -> None:
    """The server has rolled back the whole transaction with its savepoints."""
    schema.upgrade(store, NOW)
    touch = "UPDATE traits SET updated_at = NOW() WHERE id "

    def cross() -> None:
        other.exec_driver_sql(touch + "= 1")
        other.rollback()

    with store.engines.reading.connect() as other, ThreadPoolExecutor() as beside:
        # This transaction has changed more rows, so the server does not choose it as the victim.
        other.exec_driver_sql(touch + "BETWEEN 10 AND 60")
        with pytest.raises(Collided), store.write() as tx, step(tx):
            tx.exec_driver_sql(touch + "= 1")
            crossed = beside.submit(cross)
            tx.exec_driver_sql(touch + "= 10")
        crossed.result()


def test_an_upgrade_is_locked_until_it_is_committed(store: Store, url: str) -> None:
    """A program that read the revision before the commit would repeat the last step."""
    schema.upgrade(store, NOW)
    other = opened(url)
    try:
        with store.write() as tx:
            store.backend.begin_upgrade(tx)
            # Like every step that alters a table, this one ends the writer's turn.
            tx.exec_driver_sql("CREATE TABLE altered (id INTEGER PRIMARY KEY)")
            store.backend.end_upgrade(tx)
            with pytest.raises(Busy), other.write() as waiting:
                other.backend.begin_upgrade(waiting)
        with other.write() as next_one:
            other.backend.begin_upgrade(next_one)
    finally:
        other.dispose()


@pytest.fixture
def encrypting(tmp_path: Path) -> Iterator[tuple[mariadb.Mariadb, Authority]]:
    """A server that offers TLS, and its certificate authority."""
    server = mariadb.Mariadb(**mariadb.FAST)
    try:
        authority = Authority(tmp_path)
        pair = authority.pair("server")
        for file in (pair.cert, pair.key):
            shutil.copy(file, server.folder)
            packages.hand_over(server.folder / file.name, mariadb.USER)
        place = server.folder
        server.start(f"--ssl-cert={place / pair.cert.name}", f"--ssl-key={place / pair.key.name}")
        yield server, authority
    finally:
        server.close()


def cipher(store: Store) -> str:
    """The cipher of a connection; empty without encryption."""
    with store.read() as tx:
        return str(tx.exec_driver_sql("SHOW STATUS LIKE 'Ssl_cipher'").one()[1])


def test_connections_are_encrypted_if_the_server_offers_tls(
    encrypting: tuple[mariadb.Mariadb, Authority], tmp_path: Path
) -> None:
    server, authority = encrypting
    plain = server.fresh()
    (tmp_path / "others").mkdir()
    stranger = Authority(tmp_path / "others")
    made = [opened(f"{plain}{query}") for query in ("", f"?ssl_ca={authority.file}")]
    try:
        assert all(cipher(each) for each in made)
        made.append(opened(f"{plain}?ssl_ca={stranger.file}"))
        with pytest.raises(Unavailable):
            cipher(made[-1])
    finally:
        for each in made:
            each.dispose()


def test_connections_without_tls_settings_verify_no_certificate() -> None:
    """No certificate is verified, so the system's certificates are not read, which is slow."""
    first, second = (vars(NodeConnection(defer_connect=True))["ctx"] for _ in range(2))
    assert first is second
    assert first.get_ca_certs() == []
