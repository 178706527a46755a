"""The key file that every machine needs, and the commands that change it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from innkeeper.domain.slices import Storing
from innkeeper.engine.database import Database
from innkeeper.entrypoints.api.identity import key_commands, key_files, startup
from innkeeper.entrypoints.api.identity.key_files import KeyFileError
from innkeeper.main import main
from innkeeper.store.queries.identity import identity
from innkeeper.store.tables.identity import secrets
from innkeeper.store.transactions import Store
from innkeeper.systems.identity import secret_boxes
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.identity.tokens import KEY_NAME, Claims
from tests.support.stores import NOW

SECRET = b"the login of another cloud"
SECOND = b"2" * 32
Open = Callable[[], Store]
CLAIMS = Claims(("a",), "user", None, ("password",), 0, 2**60, 0)


def kept(store: Store, name: str) -> str:
    with store.read() as tx:
        return str(tx.execute(sa.select(secrets.c.value).where(secrets.c.name == name)).scalar())


def started(store: Store, folder: Path) -> str:
    """Start a machine; return a token that it signs."""
    storing = Storing(data_dir=str(folder))
    return startup.signer(Database(store), storing, os.urandom, NOW).sign(CLAIMS)


def test_the_first_start_creates_a_private_key_file(store: Store, tmp_path: Path) -> None:
    first = started(store, tmp_path)
    file = tmp_path / "encryption.key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert kept(store, KEY_NAME).startswith("sealed.1.")
    assert started(store, tmp_path) == first, "all processes sign alike"


def test_several_machines_need_the_same_file(opened: Open, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    first = started(opened(), here)
    (key,) = key_files.read(here / "encryption.key")
    with pytest.raises(KeyFileError, match=f"{secret_boxes.key_id(key)}.*there is no key file at"):
        started(opened(), there)
    assert not (there / "encryption.key").exists(), "a key of its own would help nobody"
    key_files.write(there / "encryption.key", [SECOND])
    with pytest.raises(KeyFileError, match=f"{secret_boxes.key_id(key)}, which this machine does"):
        started(opened(), there)
    (there / "encryption.key").write_bytes((here / "encryption.key").read_bytes())
    assert started(opened(), there) == first


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_file_readable_by_others_is_not_used(store: Store, tmp_path: Path, mode: int) -> None:
    started(store, tmp_path)
    (tmp_path / "encryption.key").chmod(mode)
    with pytest.raises(KeyFileError, match="chmod 600"):
        started(store, tmp_path)


@pytest.mark.parametrize("text", ["", "# nothing\n", "short\n", "é\n", "A" * 43 + "\n", "?" * 44])
def test_a_damaged_key_file_is_not_used(tmp_path: Path, text: str) -> None:
    file = tmp_path / "encryption.key"
    file.touch(mode=0o600)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(KeyFileError, match=str(file)):
        key_files.read(file)


def care(store: Store, folder: Path, act: str) -> str:
    path = folder / "encryption.key"
    return "\n".join(key_commands.carry_out(act, Database(store), path, os.urandom, NOW))


def test_rotating(opened: Open, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    first = started(opened(), here)
    with opened().write() as tx:
        secret_box = SecretBox(key_files.read(here / "encryption.key"), os.urandom)
        secret_boxes.keep(tx, secret_box, "pod 1", SECRET, NOW)
    old = kept(opened(), KEY_NAME)
    key_files.write(there / "encryption.key", key_files.read(here / "encryption.key"))
    assert care(opened(), here, "rotate").startswith("2 secrets are sealed with the new key")
    assert kept(opened(), KEY_NAME) != old
    assert started(opened(), here) == first, "tokens go on"
    with pytest.raises(KeyFileError, match="which this machine does not have"):
        started(opened(), there)
    told = care(opened(), here, "show")
    assert "seals; 2 secrets" in told and "opens; 0 secrets" in told
    assert "MISSING here; 2 secrets" in care(opened(), there, "show")
    assert care(opened(), here, "drop-old") == "1 keys dropped, 1 kept."
    assert started(opened(), here) == first


def test_a_rotation_that_dies_loses_nothing(store: Store, tmp_path: Path) -> None:
    first = started(store, tmp_path)
    path = tmp_path / "encryption.key"
    # It wrote the file, and then nothing to the database.
    key_files.write(path, [SECOND, *key_files.read(path)])
    assert started(store, tmp_path) == first
    assert care(store, tmp_path, "drop-old") == "0 keys dropped, 2 kept."
    assert started(store, tmp_path) == first


def test_a_lost_key_file_costs_the_tokens_and_nothing_else(store: Store, tmp_path: Path) -> None:
    first = started(store, tmp_path)
    (tmp_path / "encryption.key").unlink()
    with pytest.raises(KeyFileError, match="no key file"):
        started(store, tmp_path)
    told = care(store, tmp_path, "reset")
    assert "token_signing: forgotten" in told and "All existing tokens are then invalid" in told
    assert started(store, tmp_path) != first
    assert "nothing was forgotten" in care(store, tmp_path, "reset")


def test_an_unsealed_key_of_an_older_release_is_used_until_sealed(
    store: Store, tmp_path: Path
) -> None:
    """Processes of that release may still run, and cannot open a sealed key."""
    with store.write() as tx:
        identity.add_secret(tx, KEY_NAME, (b"k" * 32).hex(), NOW)
    first = started(store, tmp_path)
    assert kept(store, KEY_NAME) == (b"k" * 32).hex()
    assert "not sealed yet" in care(store, tmp_path, "show")
    assert care(store, tmp_path, "rotate").startswith("1 secrets")
    assert kept(store, KEY_NAME).startswith("sealed.1.")
    assert started(store, tmp_path) == first


def test_the_command_reports_and_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["encryption-key", "--data-dir", str(tmp_path)]
    assert main(["db", "upgrade", "--data-dir", str(tmp_path)]) == 0
    assert main([*command, "rotate"]) == 0
    assert main([*command, "show"]) == 0
    told = capsys.readouterr().out
    assert "encryption.key: there" in told and "seals; 0 secrets" in told
    (tmp_path / "encryption.key").chmod(0o644)
    assert main([*command, "show"]) == 2
    assert "chmod 600" in capsys.readouterr().err
