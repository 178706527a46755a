"""The store leaks no data, neither in logs nor by permissions of files."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from innkeeper import wiring
from innkeeper.domain.slices import Serving
from innkeeper.entrypoints.api.logs import set_up_logs
from innkeeper.settings import SettingsError, load
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Store
from tests.support.stores import NOW

SECRET = "5ec4e7" * 10


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """A log in memory."""
    before = structlog.get_config()
    stream = io.StringIO()
    set_up_logs(Serving(), stream)
    yield stream
    structlog.configure(**before)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("signing", SECRET, id="refused by a constraint"),
        pytest.param(None, SECRET, id="an empty name"),
        pytest.param("other", {SECRET: object()}, id="refused by the driver"),
    ],
)
def test_the_error_of_a_write_contains_no_values(
    store: Store, log: io.StringIO, name: str, text: str
) -> None:
    with store.write() as tx:
        identity.add_secret(tx, "signing", "x", NOW)
    with pytest.raises(Exception) as caught, store.write() as tx:
        identity.add_secret(tx, name, text, NOW)
    structlog.get_logger("test").error("batch_failed", exc_info=caught.value)
    assert "Traceback" in log.getvalue() and "INSERT INTO secrets" in log.getvalue()
    assert SECRET not in log.getvalue()
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in f"{error} {error!r} {error.args}"
        error = error.__cause__ or error.__context__


ADDRESSES = {
    "in the data directory": None,
    "by a path": "sqlite:///{folder}/named.db",
    "by a driver's name": "sqlite+pysqlite:///{folder}/named.db",
    "by an address of its own": "sqlite:///file:{folder}/named%20db?uri=true",
}


@pytest.fixture(params=[0o022, 0o000])
def permissive(request: pytest.FixtureRequest) -> Iterator[None]:
    """A permissive umask, under which files are open to all users."""
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("permissive")
@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES.keys())
def test_the_files_of_a_database_are_private(tmp_path: Path, address: str | None) -> None:
    folder = tmp_path / "data"
    if address is not None:
        folder.mkdir()
        address = address.format(folder=folder)
    settings = load(None, environ={}, overrides={"data_dir": str(folder), "database_url": address})
    opened = wiring.open_store(settings)
    try:
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode)
            for path in folder.iterdir()
            if path.is_file()
        }
    finally:
        opened.dispose()
    assert len(modes) == 5, "the database, its log and its index, and its queue of writers"
    assert set(modes.values()) == {stat.S_IRUSR | stat.S_IWUSR}, modes


def test_an_existing_file_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "named.db"
    file.touch()
    file.chmod(0o640)
    settings = load(None, environ={}, overrides={"database_url": f"sqlite:///{file}"})
    wiring.open_store(settings).dispose()
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP


def test_a_file_that_cannot_be_created_stops_the_start(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/nowhere/named.db"
    with pytest.raises(SettingsError, match="Cannot use the database"):
        wiring.connect(load(None, environ={}, overrides={"database_url": url}))
