"""Encryption with key rings, for build plan entries and stored secrets.

The first key of a ring encrypts ("seals") content into a *box*. Every key of the ring can decrypt
("open") the boxes that it sealed itself. Each module that makes boxes defines their text format,
the data that a box is bound to, and the error for a box that cannot be opened.

Always true: a box is a nonce followed by an AES-256-GCM ciphertext. To open a box, a caller needs
the key that sealed the box, and the bytes that the box is bound to. The id of a key reveals nothing
about the key.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping, Sequence

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
"""The key size of AES-256."""
KEY_ID_BYTES = 8
NONCE_BYTES = 12
"""The nonce size of AES-GCM."""
TAG_BYTES = 16
"""The size of the tag that AES-GCM adds."""


class NotOpened(Exception):
    """The box is damaged, bound to other bytes, or sealed with a key that is not in the ring."""


class KeyRing:
    """A set of keys by id, in the order in which the settings list them."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        assert keys, "a key ring has at least one key"
        assert all(len(key) == KEY_BYTES for key in keys.values()), "AES-256 takes 32 bytes"
        self._by_id = {each: AESGCM(key) for each, key in keys.items()}
        self.first_id = next(iter(keys))
        """The id of the key that seals new boxes."""

    def __contains__(self, used_id: str) -> bool:
        return used_id in self._by_id

    def seal(self, content: bytes, nonce: bytes, bound: bytes) -> bytes:
        """Encrypt ``content`` with the first key, and return the box.

        ``nonce`` must be random and used only once. ``bound`` is authenticated but not encrypted.
        """
        assert len(nonce) == NONCE_BYTES, "AES-GCM takes 12 bytes"
        return nonce + self._by_id[self.first_id].encrypt(nonce, content, bound)

    def open(self, used_id: str, box: bytes, bound: bytes) -> bytes:
        """Decrypt a box with the key ``used_id``, or raise :class:`NotOpened`."""
        nonce, sealed = box[:NONCE_BYTES], box[NONCE_BYTES:]
        try:
            return self._by_id[used_id].decrypt(nonce, sealed, bound)
        except (InvalidTag, KeyError, ValueError) as error:
            # A box that is too short for a nonce raises a ValueError.
            raise NotOpened from error


def key_id(key: bytes, purpose: bytes) -> str:
    """Return the id of a key, as hexadecimal digits. The id depends on the purpose."""
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


_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_LAST = {0: "", 2: "AQgw", 3: "AEIMQUYcgkosw048"}
"""The characters that may end a canonical encoding, by the number of characters in the last group.
Their unused bits are zero."""


def is_unpadded(text: str) -> bool:
    """Return whether a text is canonical URL-safe base64 without padding.

    The check is much faster than decoding the text.
    """
    return _ends_well(text) and _has_only_the_alphabet(text)


def are_unpadded(texts: Sequence[str]) -> bool:
    """Return whether :func:`is_unpadded` is true for all texts. This is faster than a loop."""
    return all(map(_ends_well, texts)) and _has_only_the_alphabet("".join(texts))


def _ends_well(text: str) -> bool:
    last = _LAST.get(len(text) % 4)
    return last is not None and (not last or text[-1] in last)


def _has_only_the_alphabet(text: str) -> bool:
    # In a valid text, nothing is left after removing the characters of the alphabet. Matching a
    # pattern takes three times as long.
    return text.isascii() and not text.encode().translate(None, _ALPHABET)


_STANDARD = bytes(
    {ord("-"): ord("+"), ord("_"): ord("/")}.get(each, each if each in _ALPHABET else ord("!"))
    for each in range(256)
)
"""Translates the URL-safe alphabet to the standard alphabet, and all other bytes to an invalid
character."""
_PADDING = (b"", b"", b"==", b"=")
"""The padding to add, by the number of characters in the last group."""
_DECODER = msgspec.json.Decoder(bytes)


def unpadded_bytes_of(text: str) -> bytes:
    """Decode unpadded URL-safe base64. Raises :class:`NotOpened` for a non-canonical encoding."""
    # Decoders ignore the unused bits of the last character.
    if not _ends_well(text):
        raise NotOpened
    try:
        raw = text.encode("ascii").translate(_STANDARD)
        # This decoder rejects characters outside the alphabet. It takes half the time of the
        # decoder in base64.
        return _DECODER.decode(b'"%b%b"' % (raw, _PADDING[len(text) % 4]))
    except (UnicodeEncodeError, msgspec.MsgspecError) as error:
        raise NotOpened from error
