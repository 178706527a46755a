"""The identifiers of everything that a process makes: unguessable, and in the order of time."""

from __future__ import annotations

import os
import time

DRAWN_BYTES = 10
DRAWN_AT_ONCE = 256
VERSION_7 = 0x7000_8000_0000_0000_0000
"""The version and variant bits of a UUID, below its 48 bits of time."""
RANDOM_74 = 0x0FFF_3FFF_FFFF_FFFF_FFFF


class RandomIds:
    """Unguessable, time-ordered identifiers: UUIDs of version 7 (RFC 9562).

    Rows written at the same time are therefore adjacent in every index by id. With random ids, each
    row would change a different page of an index. All changed pages must be flushed before a boot
    is acknowledged.
    """

    def __init__(self) -> None:
        self._drawn: list[bytes] = []

    def uuid(self) -> str:
        drawn = int.from_bytes(self._draw(), "big") & RANDOM_74
        text = f"{time.time_ns() // 1_000_000 << 80 | VERSION_7 | drawn:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def seed(self) -> int:
        return int.from_bytes(self._draw()[:8], "big") >> 1

    def _draw(self) -> bytes:
        """Return random bytes that no other call returns."""
        try:
            return self._drawn.pop()
        except IndexError:
            return self._draw_many()

    def _draw_many(self) -> bytes:
        # Many are drawn at once, because each system call releases the interpreter, and the
        # writer thread waits to get it back. No bytes are returned twice, even if two threads
        # draw at the same time.
        many = os.urandom(DRAWN_AT_ONCE * DRAWN_BYTES)
        first, *others = (many[i : i + DRAWN_BYTES] for i in range(0, len(many), DRAWN_BYTES))
        self._drawn += others
        return first
