"""How much is under way in this process, and when that is enough.

Always true: what is held of bodies that are being read or carried out is at most what the
settings say, and so is the number of requests. Who comes on top of that is refused before any
of the body is read, which costs next to nothing, and is told when to come again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from innkeeper.domain.errors import Unavailable
from innkeeper.domain.slices import Serving

TOO_MANY = "Too many requests are under way. Please try again."


class Load:
    """Counts requests and the bytes of their bodies. Used on the event loop alone."""

    def __init__(self) -> None:
        self.requests = 0
        self.body_bytes = 0

    @contextmanager
    def count(self, headers: Mapping[str, str], serving: Serving, bytes_max: int) -> Iterator[None]:
        """Count a request in until the block ends; its body is ``bytes_max`` long at most.

        Raises :class:`Unavailable` beyond a limit.
        """
        announced = _announced(headers, bytes_max)
        is_too_much = self.body_bytes + announced > serving.bodies_bytes_max
        if self.requests >= serving.requests_max or (announced and is_too_much):
            raise Unavailable(TOO_MANY)
        self.requests += 1
        self.body_bytes += announced
        try:
            yield
        finally:
            self.requests -= 1
            self.body_bytes -= announced


def _announced(headers: Mapping[str, str], bytes_max: int) -> int:
    """How long a body will be at most; nothing longer is kept, images included."""
    length = headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in headers:
        return 0
    # More digits than these say no more than "a lot".
    is_told = length.isdecimal() and length.isascii() and len(length) <= 18  # noqa: PLR2004
    return min(int(length), bytes_max) if is_told and length != "0" else bytes_max
