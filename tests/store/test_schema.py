"""The migrations make exactly the tables that the program speaks of, on every database."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import alembic.command
import os_resource_classes
import os_traits
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from innkeeper.domain.errors import Conflict
from innkeeper.store import schema
from innkeeper.store.backends.sqlite import Sqlite
from innkeeper.store.tables import compute, identity, placement
from innkeeper.store.tables.metadata import METADATA
from innkeeper.store.transactions import Store

NOW = datetime(2030, 1, 1)  # noqa: DTZ001 - the store's moments are naive, in UTC
NAME_MAX = 63
"""Octets of a name in PostgreSQL; MariaDB takes one more."""
ROOMS = (compute, identity, placement)


@pytest.fixture
def empty(tmp_path: Path) -> Store:
    backend = Sqlite()
    url = f"sqlite:///{tmp_path / 'schema.sqlite3'}"
    return Store(backend, backend.engines(url, readers_max=2, busy_timeout_s=5))


def test_migrations_make_what_the_tables_say(empty: Store) -> None:
    assert schema.upgrade(empty, NOW)
    with empty.read() as tx:
        context = MigrationContext.configure(tx, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
        assert schema.revision(tx) == schema.newest_revision()


def test_a_second_upgrade_changes_nothing(empty: Store) -> None:
    assert schema.upgrade(empty, NOW)
    assert not schema.upgrade(empty, NOW)


def test_down_to_nothing_and_up_again(empty: Store) -> None:
    schema.upgrade(empty, NOW)
    with empty.write() as tx:
        alembic.command.downgrade(schema.config(tx), "base")
        assert set(sa.inspect(tx).get_table_names()) == {"alembic_version"}
    assert schema.upgrade(empty, NOW)


def test_standard_names_are_there(empty: Store) -> None:
    schema.upgrade(empty, NOW)
    with empty.read() as tx:
        classes = set(tx.execute(sa.select(placement.resource_classes.c.name)).scalars())
        traits = set(tx.execute(sa.select(placement.traits.c.name)).scalars())
    assert classes == set(os_resource_classes.STANDARDS)
    assert traits == set(os_traits.get_traits())


def test_the_database_of_a_newer_program_is_left_alone(empty: Store) -> None:
    schema.upgrade(empty, NOW)
    with empty.write() as tx:
        tx.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Conflict, match="9999"):
        schema.upgrade(empty, NOW)


def test_names_fit_every_database() -> None:
    names = {
        str(name)
        for table in METADATA.tables.values()
        for name in (
            *(each.name for each in table.constraints),
            *(each.name for each in table.indexes),
        )
    }
    assert {name for name in names if len(name) > NAME_MAX} == set()
