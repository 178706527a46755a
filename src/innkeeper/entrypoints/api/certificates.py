"""TLS for those who call: the service's certificate, renewed while it serves.

Always true: nothing older than TLS 1.2 is spoken. A certificate that is renewed on the disk is
in use for new connections soon after, without a restart; one that cannot be used is told of in
the log, and the present one stays.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any

import structlog

from innkeeper.domain.slices import Serving

LOG = structlog.get_logger("innkeeper.tls")
LOOK_PERIOD_S = 10
"""How often the files are looked at; certificates are renewed days before they end."""

_Mark = tuple[tuple[int, int, int], ...]


class Certificates:
    """The certificate and key of the settings, as the server uses them.

    Raises :class:`OSError` for files that cannot be used.
    """

    def __init__(self, cert: str, key: str, client_ca: str | None) -> None:
        self._cert, self._key = Path(cert), Path(key)
        self._mark = self._marked()
        self.context = _loaded(self._cert, self._key)
        if client_ca is not None:
            _ask_clients(self.context, Path(client_ca))

    def renew(self) -> bool:
        """Take what is in the files now, if it changed; tell whether it was taken."""
        try:
            mark = self._marked()
            if mark == self._mark:
                return False
            self._mark = mark
            # Tried apart first: a pair that does not fit must not spoil the present one.
            _loaded(self._cert, self._key)
            _load(self.context, self._cert, self._key)
        except OSError as error:
            LOG.error("certificate_not_renewed", reason=str(error))
            return False
        LOG.info("certificate_renewed", path=str(self._cert))
        return True

    def _marked(self) -> _Mark:
        try:
            found = [os.stat(path) for path in (self._cert, self._key)]
        except OSError as error:
            raise OSError(f"Cannot read {error.filename}: {error.strerror}") from error
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in found)


def options(serving: Serving) -> dict[str, Any]:
    """What the server has to be told to speak TLS; nothing where it is to speak plainly."""
    if serving.tls_cert is None or serving.tls_key is None:
        return {}
    certificates = Certificates(serving.tls_cert, serving.tls_key, serving.tls_client_ca)

    async def look() -> None:
        certificates.renew()

    return {
        "ssl_context_factory": lambda _config, _default: certificates.context,
        "callback_notify": look,
        "timeout_notify": LOOK_PERIOD_S,
    }


def scheme(serving: Serving) -> str:
    """With what addresses of the service begin."""
    return "http" if serving.tls_cert is None else "https"


def certified(serving: Serving, address: str) -> str:
    """Where programs on this machine call: with TLS, where the certificate is good."""
    if serving.tls_cert is None or serving.public_url is None:
        return address
    return serving.public_url.rstrip("/")


def _loaded(cert: Path, key: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(made, cert, key)
    return made


def _load(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    try:
        # The library asks on the terminal for a passphrase that it is not given.
        context.load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError) as error:
        why = getattr(error, "reason", None) or error.strerror or error
        raise OSError(f"Cannot use the certificate {cert} with the key {key}: {why}") from error


def _ask_clients(context: ssl.SSLContext, client_ca: Path) -> None:
    try:
        context.load_verify_locations(client_ca)
    except (ssl.SSLError, OSError) as error:
        why = getattr(error, "reason", None) or error.strerror or error
        raise OSError(f"Cannot use the authority of clients {client_ca}: {why}") from error
    context.verify_mode = ssl.CERT_REQUIRED
