"""TLS between processes on different machines. Operators need not manage the certificates.

Always true: each process makes its own certificate when it starts. The key is only in a temporary
file that is removed at once. The leader's row has the digest of the leader's certificate, and a
client accepts no other certificate.
"""

from __future__ import annotations

import hashlib
import ssl
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID = timedelta(days=3650)
"""The time for which a certificate is valid. No process runs for so long. Clients check a
certificate by its digest, not by its dates."""


def server_context(now: datetime) -> tuple[ssl.SSLContext, bytes]:
    """Return a server's context with a new certificate, and the certificate's SHA-256 digest.

    ``now`` is in UTC.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "innkeeper")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + VALID)
        .sign(key, hashes.SHA256())
    )
    certificate = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The ssl module can only load keys from files.
    with tempfile.TemporaryDirectory(prefix="innkeeper-tls-") as folder:
        path = Path(folder) / "both.pem"
        path.touch(mode=0o600)
        path.write_bytes(private + certificate)
        context.load_cert_chain(path)
    digest = hashlib.sha256(made.public_bytes(serialization.Encoding.DER)).digest()
    return context, digest


def client_context() -> ssl.SSLContext:
    """Return a client's context. The caller must check the digest of the server's certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
