"""How far a step has come: a bar on a terminal, plain lines anywhere else.

Always true: any number of threads may advance a step; nothing here goes to the standard output,
which is for findings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Advance = Callable[[int], None]
"""Tells that so many more are done."""
LINES_PER_STEP = 10
PARTS_PER_LINE_MIN = 100
"""A step of fewer parts than this is soon done: its beginning and its end say enough."""


class ImportProgress(Protocol):
    """Shows how far steps have come."""

    def step(self, title: str, total: int) -> AbstractContextManager[Advance]:
        """Show a step of so many parts until the block ends."""


def shown_on(stream: TextIO) -> ImportProgress:
    """Bars if the stream is a terminal, lines if it is a file or a pipe."""
    return ImportBars(stream) if stream.isatty() else ImportLines(stream)


class ImportBars:
    """Bars that grow."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream)

    @contextmanager
    def step(self, title: str, total: int) -> Iterator[Advance]:
        """See :class:`ImportProgress`."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self._console) as bars:
            task = bars.add_task(title, total=total)
            yield lambda count: bars.advance(task, count)


class ImportLines:
    """Lines, some ten of them for a long step."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @contextmanager
    def step(self, title: str, total: int) -> Iterator[Advance]:
        """See :class:`ImportProgress`."""
        lock = threading.Lock()
        done = told = 0
        apart = max(PARTS_PER_LINE_MIN, total // LINES_PER_STEP)

        def advance(count: int) -> None:
            nonlocal done, told
            with lock:
                done += count
                if done - told >= apart or done == total:
                    told = done
                    self._tell(title, done, total)

        self._tell(title, 0, total)
        yield advance

    def _tell(self, title: str, done: int, total: int) -> None:
        self._stream.write(f"{title}: {done} of {total}\n")
        self._stream.flush()
