"""The Reservation API's form of an error, and its wording of schema violations."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from innkeeper.entrypoints.api.faults import UNKNOWN_PATH, Fault, encode

FRAMEWORK_STATUSES = (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_ACCEPTABLE)

SHOWN_MAX = 400
"""An error shows at most this many characters of a violation, which quotes the body."""


def form(fault: Fault) -> tuple[bytes, str]:
    """Return an error's body and media type."""
    body: dict[str, Any]
    if _is_of_framework(fault):
        body = {"error": fault.status, "error_message": fault.message}
    else:
        code = fault.status
        body = {"error_code": code, "error_message": fault.message, "error_name": code}
        if fault.details is not None:
            body["details"] = fault.details
    return encode(body), "application/json"


def _is_of_framework(fault: Fault) -> bool:
    """Return whether Blazar's web framework would report this error, in a different form."""
    if fault.status == HTTPStatus.NOT_FOUND:
        return fault.message == UNKNOWN_PATH
    return fault.is_versionless or fault.status in FRAMEWORK_STATUSES


def refusal(error: Any) -> str:
    """Return the message for a schema violation in a body or a query."""
    where = "/".join(str(step) for step in error.path)
    message = str(error.message)
    if len(message) > SHOWN_MAX:
        message = f"{message[:SHOWN_MAX]}..."
    return f"Malformed parameter {where}: {message}" if where else message
