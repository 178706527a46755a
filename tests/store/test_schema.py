"""The migrations create exactly the program's tables, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import alembic.command
import os_resource_classes
import os_traits
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory

from innkeeper.domain.errors import Conflict
from innkeeper.store import schema
from innkeeper.store.backends.sqlite import Sqlite
from innkeeper.store.migrations import running
from innkeeper.store.tables import compute, identity, ordering, placement
from innkeeper.store.tables.metadata import METADATA
from innkeeper.store.transactions import Store

NOW = datetime(2030, 1, 1)  # noqa: DTZ001 - the store's timestamps are naive, in UTC
NAME_MAX = 63
"""Bytes of a name in PostgreSQL; MariaDB allows one more."""
ROOMS = (compute, identity, placement)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    backend = Sqlite()
    url = f"sqlite:///{tmp_path / 'schema.sqlite3'}"
    made = Store(backend, backend.engines(url, readers_max=2, busy_timeout_s=5))
    yield made
    made.dispose()


def test_migrations_create_the_schema_of_the_tables(empty: Store) -> None:
    assert schema.upgrade(empty, NOW)
    with empty.read() as tx:
        context = MigrationContext.configure(tx, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
        assert schema.revision(tx) == schema.newest_revision()


def test_a_second_upgrade_changes_nothing(empty: Store) -> None:
    assert schema.upgrade(empty, NOW)
    assert not schema.upgrade(empty, NOW)


def test_downgrade_to_an_empty_schema_and_upgrade_again(empty: Store) -> None:
    schema.upgrade(empty, NOW)
    with empty.write() as tx:
        alembic.command.downgrade(running.config(tx), "base")
        assert set(sa.inspect(tx).get_table_names()) == {"alembic_version"}
    assert schema.upgrade(empty, NOW)


def test_standard_names_are_inserted(empty: Store) -> None:
    schema.upgrade(empty, NOW)
    with empty.read() as tx:
        classes = set(tx.execute(sa.select(placement.resource_classes.c.name)).scalars())
        traits = set(tx.execute(sa.select(placement.traits.c.name)).scalars())
    assert classes == set(os_resource_classes.STANDARDS)
    assert traits == set(os_traits.get_traits())


def made_by_a_newer_program(store: Store, compatible_since: str | None) -> None:
    """Set the database's revision to one that this program does not know."""
    with store.write() as tx:
        tx.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        tx.execute(ordering.schema_promises.delete())
        if compatible_since is not None:
            row = {"id": 1, "compatible_since": compatible_since}
            tx.execute(ordering.schema_promises.insert(), row)


@pytest.mark.parametrize("promise", ["9999", "9998", None])
def test_the_database_of_a_newer_program_is_not_changed(empty: Store, promise: str | None) -> None:
    schema.upgrade(empty, NOW)
    made_by_a_newer_program(empty, promise)
    with pytest.raises(Conflict, match="9999"):
        schema.upgrade(empty, NOW)
    with empty.read() as tx:
        assert not schema.is_usable(tx)


def test_a_newer_schema_may_be_compatible_with_this_program(empty: Store) -> None:
    schema.upgrade(empty, NOW)
    made_by_a_newer_program(empty, schema.newest_revision())
    assert not schema.upgrade(empty, NOW)
    with empty.read() as tx:
        assert schema.is_usable(tx)
        assert schema.revision(tx) == "9999"


def test_an_upgrade_stores_the_strictest_compatibility(empty: Store) -> None:
    schema.upgrade(empty, NOW)
    with empty.read() as tx:
        kept = tx.execute(sa.select(ordering.schema_promises.c.compatible_since)).scalars()
        assert list(kept) == [schema.compatible_since(schema.steps())]
    loose, strict = schema.SchemaStep("0010", "", "0007"), schema.SchemaStep("0011", "", "0011")
    assert schema.compatible_since([loose]) == "0007"
    assert schema.compatible_since([strict, loose]) == "0011"


def test_every_newer_step_names_its_compatibility() -> None:
    assert [each.revision for each in alembics_steps() if each.revision > "0006"] == [
        each.revision for each in alembics_steps() if hasattr(each.module, "compatible_since")
    ]


def test_steps_are_those_that_alembic_runs() -> None:
    assert schema.steps() == tuple(
        schema.SchemaStep(
            each.revision, each.doc, getattr(each.module, "compatible_since", each.revision)
        )
        for each in alembics_steps()
    )


def alembics_steps() -> list[Script]:
    return list(reversed(list(ScriptDirectory.from_config(running.config()).walk_revisions())))


def test_an_older_schema_is_not_usable_before_the_upgrade(empty: Store) -> None:
    with empty.read() as tx:
        assert not schema.is_usable(tx)
    with empty.write() as tx:
        alembic.command.upgrade(running.config(tx), "0005")
    with empty.read() as tx:
        assert not schema.is_usable(tx)
        missing = schema.steps_from(schema.revision(tx))
    assert [each.revision for each in missing][:2] == ["0006", "0007"]


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
