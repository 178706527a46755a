"""Progress on a terminal and in a file."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import StringIO

from innkeeper.entrypoints.simulator.wiring import progress_on
from innkeeper.terminal.progress import Bars, Lines


def test_a_file_gets_some_ten_lines() -> None:
    stream = StringIO()
    with progress_on(stream).step("best", 1000) as advance:
        for _ in range(200):
            advance(5)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "best: 100 of 1000 servers"
    assert lines[-1] == "best: 1000 of 1000 servers"
    assert len(lines) == 10


def test_an_attempt_gets_one() -> None:
    stream = StringIO()
    with Lines(stream).attempt("best: do 9 hosts suffice?", 1000) as advance:
        advance(500)
        advance(500)
    assert stream.getvalue() == "best: do 9 hosts suffice?\n"


def test_a_terminal_gets_a_bar() -> None:
    """The test uses a real pseudo-terminal, and checks what is drawn there, not how."""
    reading, writing = os.openpty()
    with ThreadPoolExecutor(1) as pool:
        drawing = pool.submit(all_of, reading)
        with os.fdopen(writing, "w", encoding="utf-8") as terminal:
            progress = progress_on(terminal)
            assert isinstance(progress, Bars)
            with progress.step("spread [best]", 40) as advance:
                advance(40)
            with progress.attempt("try", 40) as advance:
                advance(10)
        drawn = drawing.result()
    os.close(reading)
    assert "spread [best]" in drawn
    assert "40 of 40 servers" in drawn
    assert "100%" in drawn


def all_of(reading: int) -> str:
    """Everything that is drawn until the terminal is closed, however often it is redrawn."""
    pieces: list[bytes] = []
    # The end of a pseudo-terminal is an error.
    with suppress(OSError):
        while piece := os.read(reading, 100_000):
            pieces.append(piece)
    return b"".join(pieces).decode("utf-8", "replace")
