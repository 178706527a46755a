"""Encrypt secrets in the database with keys that are not in the database.

A sealed secret is encrypted and protected against changes.

The service has to read these secrets again, for example the key that signs tokens. Passwords are
not among these secrets, because only their hashes are stored.

Always true: a secret is sealed with AES-256-GCM and a random nonce, and bound to its name. Without
the key, nobody can read or change the secret, or use it under another name. A :class:`SecretBox`
has one or more keys. The box seals with the first key, and opens with any of its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime

from innkeeper.domain import key_rings
from innkeeper.domain.errors import Conflict
from innkeeper.domain.key_rings import NONCE_BYTES, KeyRing, NotOpened
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Tx

FORM = "sealed.1."
"""The prefix of sealed texts. The number is the version of the format."""
_PURPOSE = b"innkeeper secret 1\x00"
_NAMING = b"innkeeper encryption key id\x00"

Draw = Callable[[int], bytes]
"""Returns the requested number of unpredictable bytes."""


class NoSuchKey(Conflict):
    """A secret was sealed with a key that this box does not have."""

    def __init__(self, name: str, key_id: str) -> None:
        super().__init__(
            f"The secret {name!r} is sealed with the encryption key {key_id}, which this machine "
            "does not have."
        )
        self.key_id = key_id


class Spoilt(Conflict):
    """A sealed text was modified, or was sealed under another name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The sealed secret {name!r} was modified, or was sealed under another name."
        )


def key_id(key: bytes) -> str:
    """Return the id of a key. Sealed texts contain this id, which reveals nothing about the key."""
    return key_rings.key_id(key, _NAMING)


class SecretBox:
    def __init__(self, keys: Sequence[bytes], draw: Draw) -> None:
        assert keys, "a box needs at least one key"
        self._ring = KeyRing({key_id(key): key for key in keys})
        self._draw = draw

    def seal(self, name: str, secret: bytes) -> str:
        box = self._ring.seal(secret, self._draw(NONCE_BYTES), _PURPOSE + name.encode())
        return f"{FORM}{self._ring.first_id}.{key_rings.text_of(box)}"

    def open(self, name: str, text: str) -> bytes:
        """Open a secret. Raises :class:`NoSuchKey`, or :class:`Spoilt` for a modified text."""
        used, _, coded = text.removeprefix(FORM).partition(".")
        if used not in self._ring:
            raise NoSuchKey(name, used)
        try:
            box = key_rings.bytes_of(coded)
            return self._ring.open(used, box, _PURPOSE + name.encode())
        except NotOpened as error:
            raise Spoilt(name) from error


def is_sealed(text: str) -> bool:
    return text.startswith(FORM)


def used_keys(tx: Tx) -> dict[str, list[str]]:
    """Return the names of the sealed secrets, by the id of the key that sealed them."""
    found: dict[str, list[str]] = {}
    for name, text in _sealed(tx).items():
        found.setdefault(text.removeprefix(FORM).partition(".")[0], []).append(name)
    return found


def _sealed(tx: Tx) -> dict[str, str]:
    return {name: text for name, text in identity.secrets_by_name(tx).items() if is_sealed(text)}


def keep(tx: Tx, secret_box: SecretBox, name: str, secret: bytes, now: datetime) -> None:
    """Seal and store a secret. An earlier secret with this name is replaced."""
    identity.remove_secret(tx, name)
    identity.add_secret(tx, name, secret_box.seal(name, secret), now)


def read(tx: Tx, secret_box: SecretBox, name: str) -> bytes | None:
    """Return a stored secret. Raises the errors of :meth:`SecretBox.open`."""
    text = identity.secret(tx, name)
    return None if text is None else secret_box.open(name, text)


def readable(tx: Tx, secret_box: SecretBox, names: Collection[str]) -> dict[str, bytes]:
    """Return the secrets among ``names`` that this box can open, by name."""
    found: dict[str, bytes] = {}
    for name, text in identity.secrets_named(tx, names).items():
        with suppress(NoSuchKey, Spoilt):
            found[name] = secret_box.open(name, text)
    return found


def forget(tx: Tx, name: str) -> None:
    """Delete a secret, if it exists."""
    identity.remove_secret(tx, name)


def reseal(tx: Tx, secret_box: SecretBox, now: datetime) -> int:
    """Seal all secrets again with the first key. Return the number of secrets.

    Raises the errors of :meth:`SecretBox.open`.
    """
    sealed = _sealed(tx)
    for name, text in sealed.items():
        keep(tx, secret_box, name, secret_box.open(name, text), now)
    return len(sealed)


def forget_lost(tx: Tx, secret_box: SecretBox) -> list[str]:
    """Delete the secrets that no key of this box can open. Return the names of these secrets."""
    lost = []
    for name, text in _sealed(tx).items():
        try:
            secret_box.open(name, text)
        except (NoSuchKey, Spoilt):
            identity.remove_secret(tx, name)
            lost.append(name)
    return lost
