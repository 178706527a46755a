"""The service's TLS certificate, which is reloaded while the service runs.

Always true: connections use TLS 1.2 or newer. New connections use a renewed certificate soon after
its files change, without a restart. If a renewed certificate cannot be loaded, the error is logged
and the current certificate stays in use.
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
"""Seconds between two checks of the files. Renewals happen days before a certificate expires."""

_Mark = tuple[tuple[int, int, int], ...]


class Certificates:
    """The configured certificate and key, and the server's TLS context.

    The constructor raises :class:`OSError` if it cannot use the files.
    """

    def __init__(self, cert: str, key: str, client_ca: str | None) -> None:
        self._cert, self._key = Path(cert), Path(key)
        self._mark = self._marked()
        self.context = _loaded(self._cert, self._key)
        if client_ca is not None:
            _require_client_certificates(self.context, Path(client_ca))

    def renew(self) -> bool:
        """Reload the files if they have changed, and return whether they were reloaded."""
        try:
            mark = self._marked()
            if mark == self._mark:
                return False
            self._mark = mark
            # Load into a new context first, because a mismatched key must not break the current
            # context.
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
    """Return the server's TLS options, which are empty if no certificate is configured."""
    if serving.tls_cert is None or serving.tls_key is None:
        return {}
    certificates = Certificates(serving.tls_cert, serving.tls_key, serving.tls_client_ca)

    async def reload() -> None:
        certificates.renew()

    return {
        "ssl_context_factory": lambda _config, _default: certificates.context,
        "callback_notify": reload,
        "timeout_notify": LOOK_PERIOD_S,
    }


def scheme(serving: Serving) -> str:
    """Return the scheme of the service's addresses, ``http`` or ``https``."""
    return "http" if serving.tls_cert is None else "https"


def certified(serving: Serving, address: str) -> str:
    """Return the address of the service for programs on this machine.

    If the service uses TLS and has a public URL, the address is the public URL, because the
    certificate names the host of the public URL.
    """
    if serving.tls_cert is None or serving.public_url is None:
        return address
    return serving.public_url.rstrip("/")


def _loaded(cert: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, cert, key)
    return context


def _load(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    try:
        # If no password is passed, the library prompts for one on the terminal.
        context.load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError) as error:
        why = getattr(error, "reason", None) or error.strerror or error
        raise OSError(f"Cannot use the certificate {cert} with the key {key}: {why}") from error


def _require_client_certificates(context: ssl.SSLContext, client_ca: Path) -> None:
    try:
        context.load_verify_locations(client_ca)
    except (ssl.SSLError, OSError) as error:
        why = getattr(error, "reason", None) or error.strerror or error
        raise OSError(f"Cannot use the client CA certificates in {client_ca}: {why}") from error
    context.verify_mode = ssl.CERT_REQUIRED
