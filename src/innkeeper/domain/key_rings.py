"""Key rings, which seal boxes: the first key seals, and every key opens.

Build plan entries and stored secrets are sealed with one. Each room says how the id of its key
and the box stand in a text, what a box is bound to, and what it says when a box does not open.

Always true: a box is AES-256-GCM with its nonce in front. It opens with the key that sealed it
and with the same bound bytes. If any bit of the two differs, it does not open. The id of a key
tells nothing about the key.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
"""As many as AES-256 takes."""
KEY_ID_BYTES = 8
NONCE_BYTES = 12
"""As many as AES-GCM takes."""


class NotOpened(Exception):
    """No key of the ring opens this box.

    It was changed, is bound to something else, or never was a box.
    """


class KeyRing:
    """Keys by their ids, in the order in which the operator names them."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        assert keys, "a key ring without a key seals nothing"
        assert all(len(key) == KEY_BYTES for key in keys.values()), "AES-256 takes 32 bytes"
        self._by_id = {each: AESGCM(key) for each, key in keys.items()}
        self.first_id = next(iter(keys))
        """The id of the key that seals."""

    def __contains__(self, used_id: str) -> bool:
        return used_id in self._by_id

    def seal(self, content: bytes, nonce: bytes, bound: bytes) -> bytes:
        """Seal with the first key. ``nonce`` is random, and no other box has it."""
        assert len(nonce) == NONCE_BYTES, "as many as AES-GCM takes"
        return nonce + self._by_id[self.first_id].encrypt(nonce, content, bound)

    def open(self, used_id: str, box: bytes, bound: bytes) -> bytes:
        """The content of a box. Raises :class:`NotOpened`."""
        nonce, sealed = box[:NONCE_BYTES], box[NONCE_BYTES:]
        try:
            return self._by_id[used_id].decrypt(nonce, sealed, bound)
        except (InvalidTag, KeyError, ValueError) as error:
            # A box too short for a nonce is a ValueError.
            raise NotOpened from error


def key_id(key: bytes, purpose: bytes) -> str:
    """The id of a key among those for one purpose, as hexadecimal digits."""
    return hmac.digest(key, purpose, "sha256")[:KEY_ID_BYTES].hex()


def text_of(raw: bytes) -> str:
    """Bytes as URL-safe base64, padded."""
    return base64.urlsafe_b64encode(raw).decode()


def bytes_of(text: str) -> bytes:
    """The bytes of such a text. Raises :class:`NotOpened` for what is no base64.

    Several texts read alike: characters that base64 does not have are passed over.
    """
    try:
        return base64.urlsafe_b64decode(text)
    except ValueError as error:
        raise NotOpened from error


def unpadded_text_of(raw: bytes) -> str:
    """Bytes as URL-safe base64 without padding."""
    return text_of(raw).rstrip("=")


def unpadded_bytes_of(text: str) -> bytes:
    """The bytes of an unpadded text. Raises :class:`NotOpened` for any but its only spelling."""
    raw = bytes_of(text + "=" * (-len(text) % 4))
    # The decoder ignores spare bits of the last letter, and letters that base64 does not have.
    if unpadded_text_of(raw) != text:
        raise NotOpened
    return raw
