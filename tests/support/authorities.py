"""Certificates for tests: an authority, and the certificates that it signs."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BEGAN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
ENDS = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)
PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates; clients that have its file trust it."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._folder = folder
        made = self._begun(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        made = made.add_extension(usage, critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        signed = made.add_extension(identifier, critical=False).sign(self._key, hashes.SHA256())
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def pair(self, name: str, address: str = "127.0.0.1") -> Pair:
        """Sign a certificate for an address of this machine; replaces an older one of that name."""
        key = ec.generate_private_key(ec.SECP256R1())
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        made = self._begun(_named(name), key).add_extension(here, critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        signed = made.add_extension(issuer, critical=False).sign(self._key, hashes.SHA256())
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        pair.cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        pair.key.touch(mode=PRIVATE)
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return pair

    def _begun(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        return x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=BEGAN,
            not_valid_after=ENDS,
        )


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
