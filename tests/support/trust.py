"""Whom the tests' clients trust, where all speak plain HTTP on loopback."""

from __future__ import annotations

import ssl

NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""To read whom all the world trusts takes longer than many requests."""
