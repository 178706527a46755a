"""Public keys: what they are known by, and fresh pairs.

Randomness is not handed in here as elsewhere: a key that somebody can draw again is none.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from innkeeper.domain.errors import Invalid

SSH = "ssh"
_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class Generated:
    """A fresh pair, in the forms of OpenSSH."""

    private_key: str
    public_key: str


def fingerprint(key_type: str, public_key: str) -> str:
    """What people compare keys by; raises :class:`Invalid` for what is no public key."""
    found = _of_ssh(public_key) if key_type == SSH else _of_x509(public_key)
    if found is None:
        raise Invalid("Keypair data is invalid: failed to generate fingerprint")
    return ":".join(f"{byte:02x}" for byte in found)


def generate(comment: str) -> Generated:
    """Make an SSH pair."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return Generated(private.decode(), f"{public.decode()} {comment}")


def _of_ssh(public_key: str) -> bytes | None:
    # "TYPE BASE64 COMMENT", and the decoded part begins with the type again.
    words = public_key.split(None, 2)
    if len(words) < 2:  # noqa: PLR2004 - a type and the key itself
        return None
    kind = words[0].encode()
    try:
        key = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        return None
    begins = len(kind).to_bytes(_LENGTH_BYTES, "big") + kind
    if not key.startswith(begins) or len(key) == len(begins):
        return None
    # The field's fingerprints are MD5; it names the key and protects nothing.
    return hashlib.md5(key, usedforsecurity=False).digest()


def _of_x509(public_key: str) -> bytes | None:
    try:
        certificate = x509.load_pem_x509_certificate(public_key.encode())
    except ValueError:
        return None
    return certificate.fingerprint(hashes.SHA1())  # noqa: S303 - a name, as the field has it
