"""Shows the progress of long steps on the standard error, as bars on a terminal or as plain lines.

Always true: any number of threads may advance a step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

Advance = Callable[[int], None]
"""A function that reports how many more parts are done."""
LINES_PER_STEP = 10


class StepProgress(Protocol):
    """Shows the progress of steps."""

    def step(self, title: str, total: int) -> AbstractContextManager[Advance]:
        """A context manager that shows a step of ``total`` parts until the block ends."""


class AttemptProgress(StepProgress, Protocol):
    """Shows the progress of steps, and of attempts. There may be many attempts."""

    def attempt(self, title: str, total: int) -> AbstractContextManager[Advance]:
        """A context manager that shows an attempt until the block ends, then removes its bar."""


class Bars:
    """Bars for :class:`AttemptProgress`; ``columns`` are shown before the remaining time."""

    def __init__(self, stream: TextIO, *columns: ProgressColumn) -> None:
        self._console = Console(file=stream)
        self._columns = columns

    def step(self, title: str, total: int) -> AbstractContextManager[Advance]:
        return self._bar(title, total, is_transient=False)

    def attempt(self, title: str, total: int) -> AbstractContextManager[Advance]:
        return self._bar(title, total, is_transient=True)

    @contextmanager
    def _bar(self, title: str, total: int, *, is_transient: bool) -> Iterator[Advance]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            *self._columns,
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self._console, transient=is_transient) as bars:
            # Titles contain names chosen by users, which must not be read as markup.
            task = bars.add_task(title.replace("[", r"\["), total=total)
            yield lambda count: bars.advance(task, count)


class Lines:
    """Lines for :class:`AttemptProgress`: about ten for a step, and one for an attempt.

    ``parts_min`` is the minimum number of parts between two lines of a step. ``noun`` names the
    parts. With ``tells_start``, a step also has a line before its first part.
    """

    def __init__(
        self, stream: TextIO, *, parts_min: int = 1, noun: str = "", tells_start: bool = True
    ) -> None:
        self._stream = stream
        self._parts_min = parts_min
        self._suffix = f" {noun}" if noun else ""
        self._tells_start = tells_start

    @contextmanager
    def step(self, title: str, total: int) -> Iterator[Advance]:
        lock = threading.Lock()
        done = shown = 0
        interval = max(self._parts_min, total / LINES_PER_STEP)

        def show() -> None:
            self._write(f"{title}: {done} of {total}{self._suffix}")

        def advance(count: int) -> None:
            nonlocal done, shown
            with lock:
                done += count
                if done - shown >= interval or done == total:
                    shown = done
                    show()

        if self._tells_start:
            show()
        yield advance

    @contextmanager
    def attempt(self, title: str, total: int) -> Iterator[Advance]:
        self._write(title)
        yield lambda _: None

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()
