"""Whose certificates are believed, and which one is shown to whoever asks for it.

Always true: who is called has to prove to be who they are; there is no switch for not asking.
"""

from __future__ import annotations

import ssl

from innkeeper.domain.errors import Invalid


def trust_of(ca_file: str | None, cert_file: str | None, key_file: str | None) -> ssl.SSLContext:
    """Believe the authorities of a file, or the machine's own; show a certificate if there is
    one. Raises :class:`Invalid` for files that cannot be used.
    """
    try:
        made = ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise Invalid(f"Cannot use the authorities in {ca_file}: {_why(error)}.") from error
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    if cert_file is not None:
        try:
            # The library asks on the terminal for a passphrase that it is not given.
            made.load_cert_chain(cert_file, key_file, password="")
        except OSError as error:
            raise Invalid(f"Cannot use the certificate {cert_file}: {_why(error)}.") from error
    elif key_file is not None:
        raise Invalid("A key without a certificate proves nothing.")
    return made


def _why(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or str(error)
