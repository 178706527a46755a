"""Restores over damaged databases, and restores that fail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from innkeeper.domain.errors import Conflict, InUse
from innkeeper.entrypoints.maintenance import saving
from innkeeper.store.transactions import Store
from tests.support.clouds import NOW
from tests.support.saved import Output, count

LATER = NOW + timedelta(hours=1)

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda whole: whole[: len(whole) // 2],
    "one page": lambda whole: whole[:4096],
    "no schema": lambda whole: whole[:100] + b"\xf6" * 3996 + whole[4096:],
    "no middle": lambda whole: whole[:40960] + b"A" * 40960 + whole[81920:],
    "another form": lambda whole: whole[:18] + b"\x09\x09" + whole[20:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_database_is_replaced(
    store: Store, url: str, tmp_path: Path, damage: str
) -> None:
    saved = tmp_path / "saved"
    saving.backup(url, saved, Output().append, may_overwrite=False)
    store.dispose()
    file = Path(url.removeprefix("sqlite:///"))
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert saving.restore(url, saved, Output().append, LATER) == 0
    assert count(file) == count(saved)
    assert file.with_name(f"{file.name}.before-20260101T010000").exists()


def test_a_damaged_database_in_use_is_not_replaced(store: Store, url: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saving.backup(url, saved, Output().append, may_overwrite=False)
    file = Path(url.removeprefix("sqlite:///"))
    reading = subprocess.Popen(
        [sys.executable, "-c", READS, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert reading.stdout is not None
        assert reading.stdout.readline() == b"reads\n"
        store.dispose()
        spoilt = DAMAGES["no schema"](file.read_bytes())
        file.write_bytes(spoilt)
        with pytest.raises((Conflict, InUse), match="in use"):
            saving.restore(url, saved, Output().append, LATER)
        assert file.read_bytes() == spoilt
    finally:
        reading.communicate()
    assert saving.restore(url, saved, Output().append, LATER) == 0


def test_a_restore_that_fails_leaves_all_as_it_was(store: Store, url: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saving.backup(url, saved, Output().append, may_overwrite=False)
    store.dispose()
    file = Path(url.removeprefix("sqlite:///"))
    for damage in (None, "no schema"):
        before = DAMAGES[damage](file.read_bytes()) if damage else file.read_bytes()
        file.write_bytes(before)
        done = subprocess.run(
            [sys.executable, "-c", RESTORES, url, str(saved)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Conflict" in done.stderr, done
        assert list(tmp_path.glob("*.before-*")) + list(tmp_path.glob("*.partial")) == []
        if damage:
            assert file.read_bytes() == before
        else:
            assert count(file) == count(saved)
    fresh = f"sqlite:///{tmp_path / 'fresh.sqlite3'}"
    subprocess.run([sys.executable, "-c", RESTORES, fresh, str(saved)], check=False)
    assert list(tmp_path.glob("fresh*")) == []


RESTORES = """
import datetime, pathlib, resource, signal, sys
from innkeeper.entrypoints.maintenance import saving
# No file may grow beyond this, as on a full disk.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
saving.restore(sys.argv[1], pathlib.Path(sys.argv[2]), print, datetime.datetime(2026, 1, 1))
"""
READS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM servers").fetchone()
print("reads", flush=True)
sys.stdin.read()
"""
