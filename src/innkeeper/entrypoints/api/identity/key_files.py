"""The file with the keys that seal secrets, one key per line. The first key seals new secrets.

Always true: a key file is rejected if users other than its owner can access it. The file is created
before the first secret is sealed. If the database has sealed secrets, no new file is created,
because a new key cannot open them.
"""

from __future__ import annotations

import base64
import binascii
import stat
from collections.abc import Sequence
from pathlib import Path

from innkeeper.domain.key_rings import KEY_BYTES
from innkeeper.domain.slices import Storing
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.identity import private_files
from innkeeper.systems.identity import secret_boxes
from innkeeper.systems.identity.secret_boxes import Draw, NoSuchKey, SecretBox

NAME = "encryption.key"
HEAD = "# Innkeeper's encryption keys. The first key seals secrets. All keys open secrets.\n"
OTHERS = stat.S_IRWXG | stat.S_IRWXO


class KeyFileError(OSError):
    """Raised if the key file cannot be used. The message contains the reason and the remedy."""


def path_of(storing: Storing) -> Path:
    """Return the path of the key file."""
    named = storing.encryption_key_file
    return Path(storing.data_dir) / NAME if named is None else Path(named)


def read(path: Path) -> list[bytes]:
    """Return the keys in the file. The first key seals secrets. Every key can open secrets.

    Raises :class:`KeyFileError` if there are no keys, or if the file cannot be used.
    """
    try:
        if path.stat().st_mode & OTHERS:
            raise KeyFileError(
                f"Users other than its owner can access the key file {path}. Make it private: "
                "chmod 600"
            )
        lines = path.read_text(encoding="ascii").splitlines()
        keys = [_key(line.strip()) for line in lines if line.strip() and line[0] != "#"]
    except KeyFileError:
        raise
    except OSError as error:
        raise KeyFileError(f"Cannot read the key file {path}: {error.strerror}") from error
    except ValueError as error:
        raise KeyFileError(
            f"The key file {path} is damaged: a key must be {KEY_BYTES} bytes in URL-safe Base64"
        ) from error
    if not keys:
        raise KeyFileError(f"The key file {path} contains no key. Restore it from a backup")
    return keys


def _key(line: str) -> bytes:
    try:
        key = base64.urlsafe_b64decode(line)
    except binascii.Error as error:
        raise ValueError("no Base64") from error
    if len(key) != KEY_BYTES:
        raise ValueError("too long or too short")
    return key


def write(path: Path, keys: Sequence[bytes]) -> None:
    """Write the keys to the file, which is created or replaced."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = [base64.urlsafe_b64encode(key).decode() + "\n" for key in keys]
    try:
        private_files.write(path, HEAD + "".join(lines))
    except OSError as error:
        raise KeyFileError(f"Cannot write the key file {path}: {error.strerror}") from error


def secret_box_for(tx: Tx, path: Path, draw: Draw) -> SecretBox:
    """Return the secret box with this machine's keys.

    Creates a missing key file if the database has no sealed secrets yet. Raises
    :class:`KeyFileError` if the key of a sealed secret is missing. Call this function in a write
    transaction. Then, if two processes start together, the second process sees the secrets that the
    first process has sealed.
    """
    sealed = secret_boxes.used_keys(tx)
    if not path.exists() and not sealed:
        write(path, [draw(KEY_BYTES)])
    if not path.exists():
        raise KeyFileError(
            f"The secrets of this database are sealed with the encryption key "
            f"{', '.join(sorted(sealed))}, and there is no key file at {path}. Copy the file from "
            "another machine that serves this database, or from your backups"
        )
    keys = read(path)
    missing = sealed.keys() - {secret_boxes.key_id(key) for key in keys}
    if missing:
        first = min(missing)
        raise KeyFileError(
            f"{NoSuchKey(sealed[first][0], first).message} The key file is {path}. Copy the key "
            "file from another machine that serves this database"
        )
    return SecretBox(keys, draw)
