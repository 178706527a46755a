"""The Identity API's error bodies, and its messages for schema violations."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.faults import Fault, encode

SECRET_FIELDS = frozenset({"password", "original_password", "token"})
"""Error messages never quote the values of these fields."""
LOGIN = "auth"
"""The field of a login. Errors about a login quote no values, because a secret may be in the wrong
field."""
QUOTING_NOTHING = frozenset({"required", "additionalProperties"})
"""Schema keywords whose violations have messages with names of fields, but without values."""


def form(fault: Fault) -> tuple[bytes, str]:
    """Return an error's body and media type."""
    error = {"code": fault.status, "message": fault.message, "title": fault.title}
    return encode({"error": error}), "application/json"


def body_refusal(error: Any) -> str:
    """Return the message for a violation in a body."""
    path = [str(part) for part in error.path]
    if not path:
        return str(error.message)
    is_secret = path[0] == LOGIN or bool(SECRET_FIELDS & set(path))
    quotes = error.validator not in QUOTING_NOTHING
    reason = f"wrong {error.validator}" if is_secret and quotes else error.message
    return f"Invalid input for field '{'/'.join(path)}': {reason}"


def query_refusal(error: Any) -> str:
    """Return the message for a violation in a query string."""
    name = f" '{error.path[0]}'" if error.path else ""
    return f"Invalid query parameter{name}: {error.message}"
