"""Errors as the Reservation API words them: a number, a sentence, and the number again."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.faults import Fault, encode

SHOWN_MAX = 400
"""Characters of a schema's complaint that are shown; it repeats what was sent."""


def form(fault: Fault) -> tuple[bytes, str]:
    """The body of a fault, and its media type."""
    body = {"error_code": fault.status, "error_message": fault.message, "error_name": fault.status}
    return encode(body), "application/json"


def refusal(error: Any) -> str:
    """A schema's complaint about a body or a query."""
    where = "/".join(str(step) for step in error.path)
    message = f"{error.message}"
    if len(message) > SHOWN_MAX:
        message = f"{message[:SHOWN_MAX]}..."
    return f"Malformed parameter {where}: {message}" if where else message
