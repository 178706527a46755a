"""Converts errors to HTTP statuses and to the form of each API.

Always true: the answer to an unexpected error contains only a generic message and the request's id.
Every error that is not a :class:`Refusal` is unexpected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec

from innkeeper.domain import errors

UNKNOWN_PATH = "The resource could not be found."
"""The message for unknown paths."""


class HttpRefusal(errors.Refusal):
    """An error that exists only in HTTP, such as a wrong method, version or media type.

    If ``is_versionless`` is true, the answer has no version header, because the requested version
    is invalid.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, str] | None = None,
        is_versionless: bool = False,
        code: str | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})
        self.is_versionless = is_versionless


STATUSES: tuple[tuple[type[errors.Refusal], int], ...] = (
    (errors.Invalid, 400),
    (errors.Unauthenticated, 401),
    (errors.VolumeQuotaExceeded, 413),
    (errors.Forbidden, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.TooLarge, 413),
    (errors.TooManyAttempts, 429),
    (errors.ClientLeft, 400),
    (errors.PluginFailed, 503),
    (errors.Unavailable, 503),
)
"""Pairs of an error class and its status. Subclasses have the same status."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of a request, in a form that does not depend on the API.

    Programs read ``details``.
    """

    status: int
    message: str
    code: str
    request_id: str
    version: tuple[int, int] | None = None
    accept: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    extra: dict[str, str] = field(default_factory=dict)
    is_versionless: bool = False
    details: Mapping[str, Any] | None = None

    @property
    def title(self) -> str:
        """The HTTP reason phrase of the status, such as ``Not Found``."""
        return HTTPStatus(self.status).phrase


FaultForm = Callable[[Fault], tuple[bytes, str]]
"""A function that returns an error's body in the form of one API, and the body's media type."""


def fault_of(
    error: Exception, request_id: str, version: tuple[int, int] | None, accept: str
) -> Fault:
    """Return the fault for an exception. An unexpected exception gets a 500."""
    if isinstance(error, HttpRefusal):
        return Fault(
            error.status,
            error.message,
            error.code,
            request_id,
            version,
            accept,
            error.headers,
            error.extra,
            error.is_versionless,
        )
    headers: dict[str, str] = {}
    if isinstance(error, errors.Unavailable | errors.TooManyAttempts):
        headers["retry-after"] = str(error.retry_after_s)
    details = error.details if isinstance(error, errors.NotEnough) else None
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return Fault(
                status,
                error.message,
                error.code,
                request_id,
                version,
                accept,
                headers,
                details=details,
            )
    message = "An unexpected error occurred. Search the service's log for this request's id."
    return Fault(500, message, errors.Refusal.code, request_id, version, accept)


def encode(body: Any) -> bytes:
    """Encode a body of plain values as JSON."""
    return msgspec.json.encode(body)
