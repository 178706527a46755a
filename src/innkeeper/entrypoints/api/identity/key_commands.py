"""Commands that show, rotate and reset the encryption keys, and drop old keys.

Always true: a key is written to the file before any secret is sealed with it. The key stays in the
file while any secret is sealed with it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from innkeeper.domain.key_rings import KEY_BYTES
from innkeeper.engine.database import Database
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.identity import key_files
from innkeeper.systems.identity import secret_boxes, tokens
from innkeeper.systems.identity.secret_boxes import Draw, SecretBox

ACTS = ("show", "rotate", "drop-old", "reset")


def carry_out(act: str, database: Database, path: Path, draw: Draw, now: datetime) -> list[str]:
    """Carry out one of :data:`ACTS`, and return the lines to print.

    Raises :class:`~innkeeper.entrypoints.api.identity.key_files.KeyFileError` if the key file
    cannot be used.
    """
    if act == "show":
        return database.read(lambda tx: _shown(tx, path))
    acts: dict[str, Callable[[Tx], list[str]]] = {
        "rotate": lambda tx: _rotate(tx, path, draw, now),
        "drop-old": lambda tx: _drop_old(tx, path),
        "reset": lambda tx: _reset(tx, path, draw),
    }
    return database.write(acts[act])


def _shown(tx: Tx, path: Path) -> list[str]:
    used = secret_boxes.used_keys(tx)
    here = [secret_boxes.key_id(key) for key in key_files.read(path)] if path.exists() else []
    lines = [f"key file {path}: {'there' if here else 'missing'}"]
    for number, name in enumerate(here):
        role = "seals" if number == 0 else "opens"
        lines.append(f"key {name}: {role}; {len(used.get(name, ()))} secrets")
    missing = sorted(used.keys() - set(here))
    lines += [f"key {name}: MISSING here; {len(used[name])} secrets" for name in missing]
    if tokens.is_signing_key_open(tx):
        lines.append("the signing key is not sealed yet: run rotate to seal it")
    return lines


def _rotate(tx: Tx, path: Path, draw: Draw, now: datetime) -> list[str]:
    key_files.secret_box_for(tx, path, draw)
    keys = [draw(KEY_BYTES), *key_files.read(path)]
    # Write the file first. If the process crashes after this, a key is unused, but no secret is
    # lost.
    key_files.write(path, keys)
    secret_box = SecretBox(keys, draw)
    count = secret_boxes.reseal(tx, secret_box, now) + tokens.seal_signing_key(tx, secret_box, now)
    return [
        f"{count} secrets are sealed with the new key {secret_boxes.key_id(keys[0])}.",
        f"Copy {path} to all machines that serve this database. Then run drop-old on each machine.",
    ]


def _drop_old(tx: Tx, path: Path) -> list[str]:
    used = secret_boxes.used_keys(tx)
    first, *others = key_files.read(path)
    kept = [key for key in others if secret_boxes.key_id(key) in used]
    key_files.write(path, [first, *kept])
    return [f"{len(others) - len(kept)} keys dropped, {1 + len(kept)} kept."]


def _reset(tx: Tx, path: Path, draw: Draw) -> list[str]:
    if not path.exists():
        key_files.write(path, [draw(KEY_BYTES)])
    lost = secret_boxes.forget_lost(tx, SecretBox(key_files.read(path), draw))
    lines = [f"{name}: forgotten, because no key on this machine opens it" for name in lost]
    if tokens.KEY_NAME in lost:
        lines.append("Restart the service on all machines. All existing tokens are then invalid.")
    return lines or ["All sealed secrets can be opened; nothing was forgotten."]
