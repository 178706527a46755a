"""Refusals as HTTP: one table from domain error to status, and each API's form of a body.

Always true: what a client reads about an error it can be trusted with; an accident (anything
that is not a :class:`Refusal`) says no more than that it happened, and its request id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec

from innkeeper.domain import errors


class HttpRefusal(errors.Refusal):
    """A refusal that exists only in HTTP: wrong method, version, media type and alike.

    ``is_versionless`` answers carry no version header, because none was agreed on.
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
    (errors.Forbidden, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.TooLarge, 413),
    (errors.TooManyAttempts, 429),
    (errors.PluginFailed, 503),
    (errors.Unavailable, 503),
)
"""Subclasses of these have the same status."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An error on its way out, before an API gives it its form."""

    status: int
    message: str
    code: str
    request_id: str
    version: tuple[int, int] | None = None
    accept: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    extra: dict[str, str] = field(default_factory=dict)
    is_versionless: bool = False

    @property
    def title(self) -> str:
        """The status in words."""
        return HTTPStatus(self.status).phrase


FaultForm = Callable[[Fault], tuple[bytes, str]]
"""Gives an API's body for a fault, and the body's media type."""


def fault_of(
    error: Exception, request_id: str, version: tuple[int, int] | None, accept: str
) -> Fault:
    """Turn an exception into a fault; 500 for whatever is no refusal."""
    headers: dict[str, str] = {}
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
    if isinstance(error, errors.Unavailable | errors.TooManyAttempts):
        headers["retry-after"] = str(error.retry_after_s)
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return Fault(status, error.message, error.code, request_id, version, accept, headers)
    message = "An unexpected error happened here. The log tells more under the request's id."
    return Fault(500, message, errors.Refusal.code, request_id, version, accept)


def encode(body: Any) -> bytes:
    """JSON of a body made of plain values."""
    return msgspec.json.encode(body)
