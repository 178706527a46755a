"""The Placement API's error bodies, and its messages for schema violations."""

from __future__ import annotations

import html
from http import HTTPStatus
from typing import Any

from innkeeper.entrypoints.api import faults
from innkeeper.entrypoints.api.content_types import JSON, quality
from innkeeper.entrypoints.api.faults import Fault
from innkeeper.entrypoints.api.placement.versions.answers import shows_code

HTML = "text/html"
TEXT = "text/plain"
NEWLINE = "\n"
CODE_PREFIX = "placement."
COMPLAINT_MAX = 16000
"""The maximum length of the message for a schema violation. The message quotes the schema and the
body."""

GENERIC = {
    400: "The server could not comply with the request since it is either malformed or "
    "otherwise incorrect.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    405: "The method specified is not allowed for this resource.",
    406: "The resource could not be generated that was acceptable to your browser",
    409: "There was a conflict when trying to complete your request.",
    413: "The body of your request was too large for this server.",
    415: "The request media type is not supported by this server.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}
"""The first sentence of an error's message, by status. The cause follows it."""


def fault_form(fault: Fault) -> tuple[bytes, str]:
    """Return an error's body and its media type: JSON, HTML or plain text.

    See :data:`innkeeper.entrypoints.api.faults.FaultForm`.
    """
    if fault.status == HTTPStatus.UNAUTHORIZED:
        # In OpenStack the authentication middleware sends this answer, in a form of its own.
        error = {"code": fault.status, "title": fault.title, "message": fault.message}
        return faults.encode({"error": error}), JSON
    generic, cause = _sentences(fault)
    accept = "" if fault.accept.strip() == "*/*" else fault.accept
    html_quality = quality(accept, HTML) if accept.strip() else 0.0
    json_quality = quality(accept, JSON)
    if html_quality and html_quality >= json_quality:
        return _page(fault, generic, cause).encode(), HTML
    # The cause must be one line. A message of the schema library may have several lines.
    detail = f"{generic}\n\n {cause.replace(NEWLINE, ' ')}  "
    if json_quality:
        return faults.encode({"errors": [_error(fault, detail)]}), JSON
    return f"{fault.status} {fault.title}\n\n{detail}\n".encode(), TEXT


def _sentences(fault: Fault) -> tuple[str, str]:
    """Return the sentence for the status, and the cause of this error."""
    generic, cause = GENERIC.get(fault.status, fault.title), fault.message
    if fault.status == HTTPStatus.METHOD_NOT_ALLOWED:
        # A method that exists only at other versions gets a 405 without the header ``Allow``.
        return cause, generic if "allow" in fault.headers else ""
    if fault.status == HTTPStatus.NOT_ACCEPTABLE:
        accept = JSON if fault.accept.strip() in ("", "*/*") else fault.accept
        generic = f"{generic} (content of type {accept}."
    if fault.status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
        media_type = cause.removeprefix("The media type ").partition(" is ")[0]
        generic = f"The request media type {media_type} is not supported by this server."
    if fault.is_versionless:
        cause = f"Invalid microversion: {cause}"
    return generic, "" if cause == generic else cause


def _page(fault: Fault, generic: str, cause: str) -> str:
    status_line = f"{fault.status} {fault.title}"
    return (
        f"<html>\n <head>\n  <title>{status_line}</title>\n </head>\n <body>\n"
        f"  <h1>{status_line}</h1>\n  {html.escape(generic)}<br /><br />\n"
        f"{html.escape(cause)}\n\n\n </body>\n</html>"
    )


def _error(fault: Fault, detail: str) -> dict[str, Any]:
    error: dict[str, Any] = {"status": fault.status, "title": fault.title, "detail": detail}
    if shows_code(fault.version):
        error["code"] = CODE_PREFIX + fault.code
    error["request_id"] = fault.request_id
    error.update(fault.extra)
    return error


def body_refusal(error: Any) -> str:
    """Return the message for a violation in a body, in the schema library's words."""
    return f"JSON does not validate: {error}"[:COMPLAINT_MAX]


def query_refusal(error: Any) -> str:
    """Return the message for a violation in a query, in the schema library's words."""
    return f"Invalid query string parameters: {error}"[:COMPLAINT_MAX]
