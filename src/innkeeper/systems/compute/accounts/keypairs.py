"""Store users' public keys, which agents put into servers, and generate key pairs.

Always true: the private key of a generated pair is returned once, and is not stored. Two keys must
never be equal. So this module draws random numbers itself, whereas other modules get them from the
caller.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import AlreadyExists, Invalid, NotFound, QuotaExceeded
from innkeeper.domain.keypairs import Keypair
from innkeeper.store.queries.compute import keypairs
from innkeeper.store.transactions import Tx

SSH = "ssh"
_LENGTH_BYTES = 4


def get(tx: Tx, user_id: str, name: str) -> Keypair:
    """Return a keypair of a user, or raise :class:`NotFound`."""
    keypair = keypairs.get(tx, user_id, name)
    if keypair is None:
        raise NotFound(f"Keypair {name} not found for user {user_id}")
    return keypair


def for_boot(tx: Tx, user_id: str, name: str) -> Keypair:
    """Return the keypair that a boot names. Raises :class:`Invalid` for an unknown keypair."""
    try:
        return get(tx, user_id, name)
    except NotFound as error:
        raise Invalid("Invalid key_name provided.") from error


def page(tx: Tx, user_id: str, marker: str | None, limit: int) -> list[Keypair]:
    """Return at most ``limit`` keypairs of a user, sorted by name, after the name ``marker``."""
    if marker is not None and keypairs.get(tx, user_id, marker) is None:
        raise Invalid(f"marker [{marker}] not found")
    return keypairs.page(tx, user_id, marker, limit)


def add(tx: Tx, keypair: Keypair, limit: int) -> Keypair:
    """Store a user's public key. ``limit`` is the maximum number of the user's keypairs."""
    if keypairs.get(tx, keypair.user_id, keypair.name) is not None:
        raise AlreadyExists(f"Key pair '{keypair.name}' already exists.")
    if limit != UNLIMITED and keypairs.count(tx, keypair.user_id) >= limit:
        raise QuotaExceeded("Quota exceeded, too many key pairs.")
    keypairs.insert(tx, keypair)
    return keypair


def delete(tx: Tx, user_id: str, name: str) -> None:
    """Delete a keypair. Servers that were booted with it keep the key."""
    if not keypairs.delete(tx, user_id, name):
        raise NotFound(f"Keypair {name} not found for user {user_id}")


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated key pair, in the formats of OpenSSH."""

    private_key: str
    public_key: str


def fingerprint(key_type: str, public_key: str) -> str:
    """Return the fingerprint of a key. Raises :class:`Invalid` for an invalid key."""
    found = _of_ssh(public_key) if key_type == SSH else _of_x509(public_key)
    if found is None:
        raise Invalid("Keypair data is invalid: failed to generate fingerprint")
    return ":".join(f"{byte:02x}" for byte in found)


def generate(comment: str) -> Generated:
    """Generate an SSH key pair. ``comment`` is appended to the public key."""
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
    # The format is "TYPE BASE64 COMMENT". The decoded key also begins with the type.
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
    # Fingerprints are MD5, as in Nova. They identify the key, and are not used for security.
    return hashlib.md5(key, usedforsecurity=False).digest()


def _of_x509(public_key: str) -> bytes | None:
    try:
        certificate = x509.load_pem_x509_certificate(public_key.encode())
    except ValueError:
        return None
    return certificate.fingerprint(hashes.SHA1())  # noqa: S303 - identifies the key, as in Nova
