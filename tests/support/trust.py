"""The trusted certificates of the tests' clients, which all speak plain HTTP on loopback."""

from __future__ import annotations

import ssl

NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Reading the system's certificates takes longer than many requests."""
