"""A TLS context without trusted certificates, for clients that use plain HTTP on loopback."""

from __future__ import annotations

import ssl

NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody, because reading the system's certificates takes longer than many requests."""
