"""The Reservation API's form of an error, and its wording of schema violations."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.faults import Fault, encode

SHOWN_MAX = 400
"""Maximum number of characters shown of a violation, which quotes the body."""


def form(fault: Fault) -> tuple[bytes, str]:
    """Return an error's body and media type."""
    body = {"error_code": fault.status, "error_message": fault.message, "error_name": fault.status}
    return encode(body), "application/json"


def refusal(error: Any) -> str:
    """Word a violation in a body or a query."""
    where = "/".join(str(step) for step in error.path)
    message = str(error.message)
    if len(message) > SHOWN_MAX:
        message = f"{message[:SHOWN_MAX]}..."
    return f"Malformed parameter {where}: {message}" if where else message
