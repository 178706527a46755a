"""The backup commands of other databases work as printed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from innkeeper.domain.errors import Conflict
from innkeeper.domain.slices import Storing
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance import audit
from innkeeper.entrypoints.maintenance import saving
from innkeeper.store import schema
from innkeeper.store.backends import catalogue
from innkeeper.store.backends.backup_commands import BackupCommands
from innkeeper.store.tables.compute import servers
from tests.support.clouds import NOW
from tests.support.databases import mariadb_url, postgresql_url
from tests.support.saved import Output, furnished, opened
from tests.support.servers import packages

LATER = NOW + timedelta(hours=1)


def commands_of(url: str, file: str) -> BackupCommands:
    """Return the backup commands of a database that has its own programs."""
    found = catalogue.of_url(url).backup(url, file)
    assert isinstance(found, BackupCommands)
    return found


def carry_out(command: str) -> None:
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("fresh", "program", "package"),
    [
        (postgresql_url, "pg_dump", "postgresql-client"),
        (mariadb_url, "mariadb-dump", "mariadb-client"),
    ],
)
def test_the_commands_of_other_databases_save_and_restore(
    tmp_path: Path, fresh: Callable[[Path], str], program: str, package: str
) -> None:
    packages.find(program, package)
    url, file = fresh(tmp_path), str(tmp_path / "it's saved")
    store = furnished(url)
    told = Output()
    assert saving.backup(url, Path(file), told.append, may_overwrite=False) == 2
    commands = commands_of(url, file)
    assert f"  {commands.save}\n" in told.text
    carry_out(commands.save)
    with store.write() as tx:
        tx.execute(servers.update().values(name="spoilt", deleted_at=LATER))
    store.dispose()
    carry_out(commands.restore)
    other = fresh(tmp_path)
    carry_out(commands_of(other, file).restore)
    for each in (url, other):
        again = opened(each)
        assert audit.look(Database(again)) == []
        assert not schema.upgrade(again, LATER)
        with again.read() as tx:
            names = tx.execute(sa.select(servers.c.name).distinct()).scalars()
            assert list(names) == ["web"]
        again.dispose()


def test_commands_contain_no_password() -> None:
    for url in (
        "postgresql://ann:secret@db:5/x",
        "postgresql://ann@db:5/x?password=secret&sslpassword=secret&sslmode=require",
        "mariadb://ann:secret@db:5/x",
        "mariadb://ann@db:5/x?password=secret",
    ):
        assert "secret" not in "".join(commands_of(url, "file"))


def test_parameters_of_a_url_are_kept() -> None:
    told = commands_of("postgresql://db/x?options=-c%20geqo%3Doff&sslmode=require", "f")
    assert "?options=-c%20geqo%3Doff&sslmode=require" in told.save


@pytest.mark.parametrize(
    "url", ["nonsense", "oracle://db/x", "postgresql://ann:secret", "sqlite://"]
)
def test_a_file_that_is_not_a_database_is_rejected(tmp_path: Path, url: str) -> None:
    file, told = tmp_path / "f", Output()
    with pytest.raises(Conflict) as refused:
        saving.backup(url, file, told.append, may_overwrite=False)
    with pytest.raises(Conflict):
        saving.restore(url, file, told.append, LATER)
    assert "secret" not in refused.value.message


def test_the_settings_know_which_databases_are_files() -> None:
    for scheme in catalogue.BACKENDS:
        url = f"{scheme}://db/x"
        is_file = isinstance(catalogue.of_url(url).backup(url, "f"), Path)
        assert Storing(database_url=url).is_file is is_file, scheme
