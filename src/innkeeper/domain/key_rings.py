"""Key rings for build plan entries and stored secrets. The first key seals, every key opens.

Each room defines its own text format, the data that a box is bound to, and the error for a box
that does not open.

Always true: a box is a nonce followed by an AES-256-GCM ciphertext. It opens only with the key
that sealed it and the same bound bytes. The id of a key reveals nothing about the key.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
"""The key size of AES-256."""
KEY_ID_BYTES = 8
NONCE_BYTES = 12
"""The nonce size of AES-GCM."""


class NotOpened(Exception):
    """The box is damaged, bound to other bytes, or sealed with a key that is not in the ring."""


class KeyRing:
    """Keys by id, in the order of the settings."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        assert keys, "a key ring has at least one key"
        assert all(len(key) == KEY_BYTES for key in keys.values()), "AES-256 takes 32 bytes"
        self._by_id = {each: AESGCM(key) for each, key in keys.items()}
        self.first_id = next(iter(keys))
        """The id of the key that seals."""

    def __contains__(self, used_id: str) -> bool:
        return used_id in self._by_id

    def seal(self, content: bytes, nonce: bytes, bound: bytes) -> bytes:
        """Seal with the first key. ``nonce`` must be random and used only once."""
        assert len(nonce) == NONCE_BYTES, "AES-GCM takes 12 bytes"
        return nonce + self._by_id[self.first_id].encrypt(nonce, content, bound)

    def open(self, used_id: str, box: bytes, bound: bytes) -> bytes:
        """Return the content of a box, or raise :class:`NotOpened`."""
        nonce, sealed = box[:NONCE_BYTES], box[NONCE_BYTES:]
        try:
            return self._by_id[used_id].decrypt(nonce, sealed, bound)
        except (InvalidTag, KeyError, ValueError) as error:
            # A box that is too short for a nonce raises a ValueError.
            raise NotOpened from error


def key_id(key: bytes, purpose: bytes) -> str:
    """Return the id of a key for this purpose, as hexadecimal digits."""
    return hmac.digest(key, purpose, "sha256")[:KEY_ID_BYTES].hex()


def text_of(raw: bytes) -> str:
    """Encode bytes as padded URL-safe base64."""
    return base64.urlsafe_b64encode(raw).decode()


def bytes_of(text: str) -> bytes:
    """Decode URL-safe base64, or raise :class:`NotOpened`.

    Characters outside the alphabet are ignored, so several texts decode to the same bytes.
    """
    try:
        return base64.urlsafe_b64decode(text)
    except ValueError as error:
        raise NotOpened from error


def unpadded_text_of(raw: bytes) -> str:
    """Encode bytes as URL-safe base64 without padding."""
    return text_of(raw).rstrip("=")


def unpadded_bytes_of(text: str) -> bytes:
    """Decode unpadded URL-safe base64. Raises :class:`NotOpened` for a non-canonical encoding."""
    raw = bytes_of(text + "=" * (-len(text) % 4))
    # The decoder ignores spare bits of the last character, and characters outside the alphabet.
    if unpadded_text_of(raw) != text:
        raise NotOpened
    return raw
