"""Whether a text is an address that HTTP can be spoken with."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_http(text: str) -> bool:
    """Whether this is an http or https address with a host, and a port that can be one."""
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    is_plain = text.isprintable() and not any(char.isspace() for char in text)
    return is_whole and has_port and is_plain
