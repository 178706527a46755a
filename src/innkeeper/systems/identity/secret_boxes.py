"""Secrets at rest: sealed with keys that are not in the database.

The key that signs tokens is kept so, and whatever else the service must be able to read again,
such as the logins of other clouds. Passwords are not: of them there are only hashes.

Always true: a sealed text is AES-256-GCM under a random nonce, bound to the name under which it
is kept; so it can be neither read nor changed without the key, nor put in another's place. The
first key of a safe seals; all of them open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from innkeeper.domain import key_rings
from innkeeper.domain.errors import Conflict
from innkeeper.domain.key_rings import NONCE_BYTES, KeyRing, NotOpened
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Tx

FORM = "sealed.1."
"""How sealed texts begin; the number is that of their form."""
_PURPOSE = b"innkeeper secret 1\x00"
_NAMING = b"innkeeper encryption key id\x00"

Draw = Callable[[int], bytes]
"""Gives so many bytes that nobody can guess."""


class NoSuchKey(Conflict):
    """Something was sealed with a key that this safe does not have."""

    def __init__(self, name: str, key_id: str) -> None:
        super().__init__(
            f"The secret {name!r} is sealed with the encryption key {key_id}, which is not "
            "among those of this machine."
        )
        self.key_id = key_id


class Spoilt(Conflict):
    """A sealed text is not as it was made."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The secret {name!r} was changed, or is another one's.")


def key_id(key: bytes) -> str:
    """The id of a key; it tells nothing about the key."""
    return key_rings.key_id(key, _NAMING)


class SecretBox:
    """Seals and opens."""

    def __init__(self, keys: Sequence[bytes], draw: Draw) -> None:
        assert keys, "a safe without a key keeps nothing"
        self._ring = KeyRing({key_id(key): key for key in keys})
        self._draw = draw

    def seal(self, name: str, secret: bytes) -> str:
        """Seal a secret that is kept under this name."""
        box = self._ring.seal(secret, self._draw(NONCE_BYTES), _PURPOSE + name.encode())
        return f"{FORM}{self._ring.first_id}.{key_rings.text_of(box)}"

    def open(self, name: str, text: str) -> bytes:
        """What was sealed. Raises :class:`NoSuchKey`, and :class:`Spoilt` for what was not."""
        used, _, coded = text.removeprefix(FORM).partition(".")
        if used not in self._ring:
            raise NoSuchKey(name, used)
        try:
            box = key_rings.bytes_of(coded)
            return self._ring.open(used, box, _PURPOSE + name.encode())
        except NotOpened as error:
            raise Spoilt(name) from error


def is_sealed(text: str) -> bool:
    """Whether a text that is kept as a secret is sealed."""
    return text.startswith(FORM)


def used_keys(tx: Tx) -> dict[str, list[str]]:
    """The names of all that is sealed, by the ids of the keys."""
    found: dict[str, list[str]] = {}
    for name, text in identity.secrets_by_name(tx).items():
        if is_sealed(text):
            found.setdefault(text.removeprefix(FORM).partition(".")[0], []).append(name)
    return found


def keep(tx: Tx, secret_box: SecretBox, name: str, secret: bytes, now: datetime) -> None:
    """Keep a secret, in the place of one that may be there."""
    identity.remove_secret(tx, name)
    identity.add_secret(tx, name, secret_box.seal(name, secret), now)


def take(tx: Tx, secret_box: SecretBox, name: str) -> bytes | None:
    """A secret that is kept, if it is; see :meth:`Safe.open` for what is raised."""
    text = identity.secret(tx, name)
    return None if text is None else secret_box.open(name, text)


def reseal(tx: Tx, secret_box: SecretBox, now: datetime) -> int:
    """Seal all anew with the first key; gives how many. Raises what :meth:`Safe.open` does."""
    count = 0
    for name, text in identity.secrets_by_name(tx).items():
        if is_sealed(text):
            keep(tx, secret_box, name, secret_box.open(name, text), now)
            count += 1
    return count


def forget_lost(tx: Tx, secret_box: SecretBox) -> list[str]:
    """Drop what no key of this safe opens; gives the names."""
    lost = []
    for name, text in identity.secrets_by_name(tx).items():
        try:
            if is_sealed(text):
                secret_box.open(name, text)
        except (NoSuchKey, Spoilt):
            identity.remove_secret(tx, name)
            lost.append(name)
    return lost
