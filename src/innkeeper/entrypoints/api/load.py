"""Limits on the requests in progress in this process, and on the bytes of their bodies.

Always true: the number of requests and the number of bytes stay within the limits in the settings.
If a request would exceed a limit, it is rejected before its body is read. The answer has the header
``Retry-After``.
"""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.domain.errors import Unavailable
from innkeeper.domain.slices import Serving

TOO_MANY = "Too many requests are in progress. Please try again later."


class Load:
    """Counts requests and the bytes of their bodies, on the event loop."""

    def __init__(self) -> None:
        self.requests = 0
        self.body_bytes = 0

    def begin(self, headers: Mapping[str, str], serving: Serving, bytes_max: int) -> int:
        """Count a request and the bytes of its body, and return the counted bytes.

        The caller must later pass the counted bytes to :meth:`end`. At most ``bytes_max`` are
        counted.

        Raises :class:`Unavailable` and counts nothing if the request would exceed a limit.
        """
        announced = _announced(headers, bytes_max)
        is_too_much = self.body_bytes + announced > serving.bodies_bytes_max
        if self.requests >= serving.requests_max or (announced and is_too_much):
            raise Unavailable(TOO_MANY)
        self.requests += 1
        self.body_bytes += announced
        return announced

    def end(self, announced: int) -> None:
        """Stop counting a request, and the bytes that :meth:`begin` returned for it."""
        self.requests -= 1
        self.body_bytes -= announced


def _announced(headers: Mapping[str, str], bytes_max: int) -> int:
    """Return an upper bound on the bytes of the body that are kept in memory.

    This is at most ``bytes_max``, even for larger images, which are not kept in memory as a whole.
    """
    length = headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in headers:
        return 0
    # A number with more digits exceeds every limit.
    is_number = length.isdecimal() and length.isascii() and len(length) <= 18  # noqa: PLR2004
    return min(int(length), bytes_max) if is_number and length != "0" else bytes_max
