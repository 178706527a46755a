"""The Placement API's form of an error, and its words for what a schema has to complain of."""

from __future__ import annotations

import html
from http import HTTPStatus
from typing import Any

from innkeeper.entrypoints.api import faults
from innkeeper.entrypoints.api.accepting import JSON, accepts
from innkeeper.entrypoints.api.faults import Fault
from innkeeper.entrypoints.api.placement.versions.v1_23_codes_in_errors import shows_code

CODE_PREFIX = "placement."
COMPLAINT_MAX = 8000
"""A complaint quotes the schema and the body; what comes first says which and where."""

GENERIC = {
    400: "The server could not comply with the request since it is either malformed or "
    "otherwise incorrect.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    405: "The method specified is not allowed for this resource.",
    406: "The resource could not be generated that was acceptable to your browser.",
    409: "There was a conflict when trying to complete your request.",
    413: "The body of your request was too large for this server.",
    415: "The request media type is not supported by this server.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}
"""The sentence that every cause stands behind, by status."""


def fault_form(fault: Fault) -> tuple[bytes, str]:
    """See :data:`innkeeper.entrypoints.api.faults.FaultForm`."""
    if fault.status == HTTPStatus.UNAUTHORIZED:
        # The one answer that upstream leaves to its authentication layer, in that one's form.
        error = {"code": fault.status, "title": fault.title, "message": fault.message}
        return faults.encode({"error": error}), JSON
    detail = _detail(fault)
    if accepts(fault.accept, JSON):
        return faults.encode({"errors": [_error(fault, detail)]}), JSON
    status_line = f"{fault.status} {fault.title}"
    if accepts(fault.accept, "text/html") and not accepts(fault.accept, "text/plain"):
        page = (
            f"<html><head><title>{status_line}</title></head>"
            f"<body><h1>{status_line}</h1><p>{html.escape(detail)}</p></body></html>"
        )
        return page.encode(), "text/html"
    return f"{status_line}\n\n{detail}\n".encode(), "text/plain"


def _detail(fault: Fault) -> str:
    generic = GENERIC.get(fault.status, fault.title)
    if fault.message == generic:
        return f"{generic}\n\n   "
    # Causes are one line each, also those of the schema library.
    cause = fault.message.replace("\n", " ")
    return f"{generic}\n\n {cause}  "


def _error(fault: Fault, detail: str) -> dict[str, Any]:
    error: dict[str, Any] = {"status": fault.status, "title": fault.title, "detail": detail}
    if shows_code(fault.version):
        error["code"] = CODE_PREFIX + fault.code
    error["request_id"] = fault.request_id
    error.update(fault.extra)
    return error


def body_refusal(error: Any) -> str:
    """What is wrong with a body, in the schema library's own words."""
    return f"JSON does not validate: {error}"[:COMPLAINT_MAX]


def query_refusal(error: Any) -> str:
    """What is wrong with a query, in the schema library's own words."""
    return f"Invalid query string parameters: {error}"[:COMPLAINT_MAX]
