"""Creates identifiers that nobody can guess, and that are in the order of their creation."""

from __future__ import annotations

import os
import time

DRAWN_BYTES = 10
DRAWN_AT_ONCE = 256
DRAWN_DIGITS = 2 * DRAWN_BYTES
SEED_DIGITS = 16
VERSION = "7"
VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""Maps a random digit to a digit with the variant bits of a UUID. Two random bits are kept."""


class RandomIds:
    """Creates UUIDs of version 7 (RFC 9562), which are unguessable and in the order of time.

    Therefore, rows that are written at the same time are adjacent in every index by id. With random
    ids, each row would change a different page of an index, and all changed pages must be flushed
    before a boot is acknowledged.
    """

    def __init__(self) -> None:
        self._drawn: list[str] = []
        self._beginning = 0, ""

    def uuid(self) -> str:
        now_ms = time.time_ns() // 1_000_000
        # A request for many servers makes many ids in a millisecond. Other threads may set the
        # beginning at the same time, so the moment and its text are one value.
        moment_ms, beginning = self._beginning
        if moment_ms != now_ms:
            digits = f"{now_ms:012x}"
            beginning = f"{digits[:8]}-{digits[8:]}-{VERSION}"
            self._beginning = now_ms, beginning
        drawn = self._draw()
        return f"{beginning}{drawn[:3]}-{VARIANTS[drawn[3]]}{drawn[4:7]}-{drawn[8:]}"

    def seed(self) -> int:
        return int(self._draw()[:SEED_DIGITS], 16) >> 1

    def _draw(self) -> str:
        """Return random digits that no other call returns."""
        try:
            return self._drawn.pop()
        except IndexError:
            return self._draw_many()

    def _draw_many(self) -> str:
        # Draw many digits at once. Each system call releases the interpreter lock, and the writer
        # thread must then wait to get the lock back. No digits are returned twice, even if two
        # threads draw at the same time.
        many = os.urandom(DRAWN_AT_ONCE * DRAWN_BYTES).hex()
        first, *others = (many[i : i + DRAWN_DIGITS] for i in range(0, len(many), DRAWN_DIGITS))
        self._drawn += others
        return first
