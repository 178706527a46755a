"""Public keys are recognized, and both keys of a generated pair belong together."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from innkeeper.domain.errors import Invalid
from innkeeper.systems.compute.accounts import keypairs
from innkeeper.systems.compute.accounts.keypairs import SSH

BYTES_OF_MD5 = 16
BYTES_OF_SHA1 = 20


def test_a_made_pair_belongs_together() -> None:
    made = keypairs.generate("me")
    private = serialization.load_ssh_private_key(made.private_key.encode(), None)
    public = private.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    assert made.public_key == f"{public.decode()} me"
    assert len(keypairs.fingerprint(SSH, made.public_key).split(":")) == BYTES_OF_MD5
    assert keypairs.generate("me") != made


def test_a_certificate_has_a_fingerprint() -> None:
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "me")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, None)
    )
    text = certificate.public_bytes(serialization.Encoding.PEM).decode()
    found = keypairs.fingerprint("x509", text)
    assert found.replace(":", "") == certificate.fingerprint(hashes.SHA1()).hex()  # noqa: S303
    assert len(found.split(":")) == BYTES_OF_SHA1


def _ssh(kind: bytes, rest: bytes) -> str:
    blob = len(kind).to_bytes(4, "big") + kind + rest
    return base64.b64encode(blob).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ssh-rsa",
        "ssh-rsa AAAA",
        "ssh-rsa not-base64!",
        "ssh-rsa \u00e9",
        f"ssh-rsa {_ssh(b'ssh-dss', b'key')}",
        f"ssh-rsa {_ssh(b'ssh-rsa', b'')}",
    ],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        keypairs.fingerprint(SSH, text)
    with pytest.raises(Invalid):
        keypairs.fingerprint("x509", text)


def test_kinds_of_keys_that_nobody_knows_yet_are_keys() -> None:
    assert keypairs.fingerprint(SSH, f"sk-new@x {_ssh(b'sk-new@x', b'key')} comment")
