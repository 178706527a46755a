"""Reads the path, query and body of a request, and enforces their limits.

Always true: the names and values in a path or query contain no NUL character. The settings limit
the size of a body, and the time that a client may take to send it.
"""

from __future__ import annotations

import asyncio
import re
import string
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote

from innkeeper.domain.errors import Invalid, NotFound, TooLarge
from innkeeper.entrypoints.api.asgi import AsgiRequest
from innkeeper.entrypoints.api.connections import ARRIVING
from innkeeper.entrypoints.api.faults import UNKNOWN_PATH, HttpRefusal
from innkeeper.entrypoints.api.routing import Route

NUL = "\0"
HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
"""The pattern of the header ``Host``: a name or an address, with an optional port."""
PORT_MAX = 65535
QUERY_FIELDS_MAX = 256
"""The maximum number of fields in a query, because databases reject queries with too many
conditions."""


def check_announced(request: AsgiRequest) -> None:
    """Raise :class:`Invalid` if a request has a body, but no header ``Content-Type``."""
    length = request.headers.get("content-length", "0")
    if length != "0" and not request.headers.get("content-type"):
        raise Invalid("content-type header required when content-length > 0")


def check_media_type(route: Route, content_type: str) -> None:
    """Raise a 415 if the route does not accept the media type of the body."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in route.media_types:
        raise HttpRefusal(
            415,
            f"The media type {media_type or 'None'} is not supported, "
            f"use {' or '.join(route.media_types)}",
        )


def host(request: AsgiRequest) -> str:
    """Return the host that the client addressed, with an optional port."""
    name = request.headers.get("host", "localhost")
    match = HOST.fullmatch(name)
    if match is None or int(match[1] or 0) > PORT_MAX:
        raise Invalid("The header Host must be a name or an IP address, with an optional port.")
    return name


def target(request: AsgiRequest) -> str:
    """Return the path and the query of a request, as the client sent them.

    Bytes that are not allowed in a URL, such as those of accented letters, are escaped.
    """
    path, raw = request.scope["raw_path"], request.scope["query_string"]
    return quote(path + b"?" + raw if raw else path, safe=string.punctuation)


def params(request: AsgiRequest) -> dict[str, str]:
    """Return the values in the path, keyed by the names in the route's template."""
    found = request.params
    if any(NUL in value for value in found.values()):
        # No id contains a NUL character, and some databases reject it.
        raise NotFound(UNKNOWN_PATH)
    return dict(found)


def query(request: AsgiRequest) -> dict[str, list[str]]:
    """Return all values of each query parameter, in order."""
    raw = request.scope["query_string"]
    if not raw:
        return {}
    if raw.count(b"&") >= QUERY_FIELDS_MAX:
        raise Invalid(f"The query string has more than {QUERY_FIELDS_MAX} fields.")
    try:
        pairs: Sequence[tuple[str, str]] = parse_qsl(
            raw.decode(), keep_blank_values=True, errors="strict"
        )
    except (UnicodeDecodeError, ValueError) as error:
        raise Invalid("The query string is not UTF-8.") from error
    if any(NUL in name + value for name, value in pairs):
        raise Invalid("The query string has a NUL character.")
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values


class ClientGone(HttpRefusal):
    """The client closed the connection before the end of the body, so no answer can reach it."""

    def __init__(self) -> None:
        super().__init__(400, "The client closed the connection before the end of the body.")


async def parts(request: AsgiRequest, timeout_s: float) -> AsyncIterator[bytes]:
    """Yield the parts of the body.

    Raises a 408 if no further part arrives within ``timeout_s``.
    """
    is_more = True
    while is_more:
        try:
            async with asyncio.timeout(timeout_s):
                event = await request.receive()
        except TimeoutError as error:
            raise _too_slow(timeout_s, is_total=False) from error
        part, is_more = _part(event)
        yield part


def _too_slow(timeout_s: float, *, is_total: bool) -> HttpRefusal:
    message = f"No more of the body was received for {timeout_s:g} seconds."
    if is_total:
        message = f"The body was not complete within {timeout_s:g} seconds."
    # Close the connection. Otherwise, the rest of the body would be read as the next request.
    return HttpRefusal(408, message, headers={"connection": "close"})


def _part(event: Any) -> tuple[bytes, bool]:
    if event["type"] != "http.request":
        raise ClientGone
    return event["body"], event["more_body"]


async def body(
    request: AsgiRequest, bytes_max: int, timeout_s: float, *, is_total: bool = False
) -> bytes:
    """Return the whole body. Raises :class:`TooLarge` if it has more than ``bytes_max``.

    Raises a 408 if no further part arrives within ``timeout_s``. If ``is_total`` is true, the
    timeout applies to the whole body as well.
    """
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > bytes_max:
        raise TooLarge(f"The body is larger than {bytes_max} bytes.")
    if announced == "0" and "transfer-encoding" not in request.headers:
        return b""
    pieces: list[bytes] = []
    arriving = request.scope.get(ARRIVING)
    if arriving is not None and not arriving.more_body:
        # Nearly every body arrives together with its head. Such a body needs no timeout. A timeout
        # would cost more than the rest of this function.
        return _small(_part(await request.receive())[0], bytes_max)
    kept, is_more = 0, True
    try:
        # All parts share one timeout, because most bodies have one part only.
        async with asyncio.timeout(timeout_s) as limit:
            while is_more and kept <= bytes_max:
                if pieces and not is_total:
                    limit.reschedule(asyncio.get_running_loop().time() + timeout_s)
                part, is_more = _part(await request.receive())
                kept += len(part)
                pieces.append(part)
    except TimeoutError as error:
        raise _too_slow(timeout_s, is_total=is_total) from error
    return _small(b"".join(pieces), bytes_max)


def _small(whole: bytes, bytes_max: int) -> bytes:
    if len(whole) > bytes_max:
        raise TooLarge(f"The body is larger than {bytes_max} bytes.")
    return whole
