"""The Image API's error bodies. They are HTML, or JSON for clients that do not accept HTML."""

from __future__ import annotations

from html import escape
from typing import Any

from innkeeper.entrypoints.api.faults import Fault, encode

SHOWN_MAX = 400
"""Maximum length of a validation error, which quotes the request."""


def form(fault: Fault) -> tuple[bytes, str]:
    """Return a fault's body and media type."""
    status = f"{fault.status} {fault.title}"
    if "application/json" in fault.accept and "text/html" not in fault.accept:
        body = {"message": fault.message, "code": status, "title": fault.title}
        return encode(body), "application/json"
    page = (
        f"<html>\n <head>\n  <title>{escape(status)}</title>\n </head>\n <body>\n"
        f"  <h1>{escape(status)}</h1>\n  {escape(fault.message)}<br /><br />\n\n\n"
        " </body>\n</html>"
    )
    return page.encode(), "text/html"


def refusal(error: Any) -> str:
    """Return the message for a validation error in a body or a query."""
    where = "/".join(str(step) for step in error.path)
    message = f"Provided object does not match schema 'image': {error.message}"
    if len(message) > SHOWN_MAX:
        message = f"{message[:SHOWN_MAX]}..."
    return f"{message} in {where}" if where else message
