"""Databases are saved while they are in use, and restored while they are not."""

from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from innkeeper.domain.errors import Conflict, InUse
from innkeeper.entrypoints.maintenance import saving
from innkeeper.store import schema
from innkeeper.store.tables.placement import traits
from innkeeper.store.transactions import Store
from innkeeper.systems.placement import traits as trait_rules
from tests.support.audited import PLANTS
from tests.support.clouds import NOW
from tests.support.saved import Output, count, furnished

LATER = NOW + timedelta(hours=1)


def test_a_backup_is_a_snapshot_of_a_database_in_use(
    store: Store, url: str, tmp_path: Path
) -> None:
    target, told, ended = tmp_path / "saved", Output(), threading.Event()

    def write() -> None:
        for number in range(10_000):
            with store.write() as tx:
                # The number of rows is even: the copy has both rows of a transaction, or none.
                trait_rules.ensure(tx, f"CUSTOM_A{number}", NOW)
                trait_rules.ensure(tx, f"CUSTOM_B{number}", NOW)
            if ended.is_set():
                return

    with store.read() as tx:
        before = tx.execute(sa.select(sa.func.count()).select_from(traits)).scalar_one()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            assert saving.backup(url, target, told.append, may_overwrite=True) == 0
            assert (count(target) - before) % 2 == 0
    finally:
        ended.set()
        writer.join()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert told.text.startswith("0 findings\nSaved ")
    assert sorted(each.name for each in tmp_path.glob("saved*")) == ["saved"]


def test_a_backup_overwrites_nothing_without_permission(
    store: Store, url: str, tmp_path: Path
) -> None:
    target = tmp_path / "saved"
    target.write_text("mine")
    with pytest.raises(Conflict, match="--force"):
        saving.backup(url, target, Output().append, may_overwrite=False)
    assert target.read_text() == "mine"
    own = Path(url.removeprefix("sqlite:///"))
    with pytest.raises(Conflict, match="the database itself"):
        saving.backup(url, own, Output().append, may_overwrite=True)


def test_a_backup_overwrites_only_backups(store: Store, url: str, tmp_path: Path) -> None:
    saved, key = tmp_path / "saved", tmp_path / "encryption.key"
    saving.backup(url, saved, Output().append, may_overwrite=False)
    assert saving.backup(url, saved, Output().append, may_overwrite=True) == 0
    key.write_text("a key that opens what is sealed")
    queue = Path(url.removeprefix("sqlite:///") + "-turn")
    queue.touch()
    for other in (key, queue, tmp_path, Path("/dev/null")):
        with pytest.raises(Conflict, match="not an earlier backup"):
            saving.backup(url, other, Output().append, may_overwrite=True)
    assert key.read_text() == "a key that opens what is sealed"
    assert sorted(each.name for each in tmp_path.glob("*.partial")) == []


def test_a_backup_reports_its_findings(store: Store, url: str, tmp_path: Path) -> None:
    with store.write() as tx:
        PLANTS["idle-consumer"](tx, None)  # type: ignore[arg-type]
    told = Output()
    assert saving.backup(url, tmp_path / "saved", told.append, may_overwrite=False) == 1
    assert "placement: idle-consumer: " in told.text


def test_a_damaged_database_is_not_saved(tmp_path: Path, url: str) -> None:
    furnished(url).dispose()
    file = Path(url.removeprefix("sqlite:///"))
    whole = file.read_bytes()
    middle = len(whole) // 2
    file.write_bytes(whole[:middle] + b"A" * 8192 + whole[middle + 8192 :])
    target = tmp_path / "saved"
    with pytest.raises(Conflict, match=r"damaged|malformed"):
        saving.backup(url, target, Output().append, may_overwrite=False)
    assert list(tmp_path.glob("saved*")) == []


def put_back(url: str, file: Path) -> str:
    told = Output()
    assert saving.restore(url, file, told.append, LATER) == 0
    return told.text


def test_a_restore_brings_back_the_backup_and_keeps_the_old_database(
    store: Store, url: str, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    saving.backup(url, saved, Output().append, may_overwrite=False)
    with store.write() as tx:
        trait_rules.ensure(tx, "CUSTOM_LATER", NOW)
    with pytest.raises(InUse, match="Stop the service first"):
        saving.restore(url, saved, Output().append, LATER)
    store.dispose()
    then = count(saved)
    told = put_back(url, saved)
    file = Path(url.removeprefix("sqlite:///"))
    kept = file.with_name(f"{file.name}.before-20260101T010000")
    lines = ["0 findings", f"Restored {file} from {saved}.", f"The previous database is in {kept}."]
    assert told.splitlines() == lines
    assert (count(file), count(kept)) == (then, then + 1)
    for each in (file, kept):
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
    with pytest.raises(Conflict, match="already exists"):
        saving.restore(url, saved, Output().append, LATER)


def test_restoring_over_no_file_or_another_file(store: Store, url: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saving.backup(url, saved, Output().append, may_overwrite=False)
    fresh = tmp_path / "fresh.sqlite3"
    assert put_back(f"sqlite:///{fresh}", saved).endswith(f"from {saved}.\n")
    assert count(fresh) == count(saved)
    letter = tmp_path / "letter.sqlite3"
    letter.write_bytes(b"This is a letter, and no database at all. " * 100)
    put_back(f"sqlite:///{letter}", saved)
    assert count(letter) == count(saved)
    kept = letter.with_name(f"{letter.name}.before-20260101T010000")
    assert kept.read_bytes().startswith(b"This is a letter")


def _only_in_name(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES (?)", (schema.newest_revision(),))
    connection.close()


def _older_in_name(file: Path) -> None:
    _only_in_name(file)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    connection.close()


def _folder(file: Path) -> None:
    file.mkdir()


def _nothing(file: Path) -> None:
    file.write_bytes(b"")


def _no_database(file: Path) -> None:
    file.write_bytes(b"x" * 5000)


def _of_another(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE mine (id INTEGER)")
    connection.close()


def _newer(file: Path) -> None:
    furnished(f"sqlite:///{file}").dispose()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()


@pytest.mark.parametrize(
    "make", [_nothing, _no_database, _of_another, _newer, _only_in_name, _older_in_name, _folder]
)
def test_only_a_usable_backup_is_restored(
    store: Store, url: str, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    store.dispose()
    file = Path(url.removeprefix("sqlite:///"))
    before = file.read_bytes()
    make(tmp_path / "strange")
    with pytest.raises(Conflict):
        saving.restore(url, tmp_path / "strange", Output().append, LATER)
    with pytest.raises(Conflict, match="There is no file"):
        saving.restore(url, tmp_path / "nowhere", Output().append, LATER)
    assert file.read_bytes() == before
