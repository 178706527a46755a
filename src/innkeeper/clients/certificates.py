"""TLS settings of clients: the CA bundle, and the client's own certificate.

Always true: the server's certificate is verified. Verification cannot be switched off.
"""

from __future__ import annotations

import ssl

from innkeeper.domain.errors import Invalid


def trust_of(ca_file: str | None, cert_file: str | None, key_file: str | None) -> ssl.SSLContext:
    """Create the TLS context of a client.

    Servers are verified with the CA bundle ``ca_file``, or by default with the CA bundle of the
    system. If ``cert_file`` is given, the client presents that certificate. Raises :class:`Invalid`
    for unusable files.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise Invalid(f"Cannot use the CA bundle {ca_file}: {_why(error)}.") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if cert_file is not None:
        try:
            # Without a password, the library would prompt for one on the terminal.
            context.load_cert_chain(cert_file, key_file, password="")
        except OSError as error:
            raise Invalid(f"Cannot use the certificate {cert_file}: {_why(error)}.") from error
    elif key_file is not None:
        raise Invalid("A private key is given without its certificate.")
    return context


def _why(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or str(error)
