"""How far a replay has come: a bar on a terminal, plain lines anywhere else.

Always true: nothing here goes to the standard output, which is for the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

Advance = Callable[[int], None]
"""Told that so many more servers were decided on."""
LINES_PER_REPLAY = 10


class Watcher(Protocol):
    """Shows how far replays have come."""

    def replay(self, title: str, servers: int) -> AbstractContextManager[Advance]:
        """Show a replay until the block ends."""

    def attempt(self, title: str, servers: int) -> AbstractContextManager[Advance]:
        """Show a replay that is one of many, until the block ends."""


def shown_on(stream: TextIO) -> Watcher:
    """Bars if the stream is a terminal, lines if it is a file or a pipe."""
    return ReplayBars(stream) if stream.isatty() else ReplayLines(stream)


class ReplayBars:
    """Bars that grow; those of attempts go away again."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream)

    def replay(self, title: str, servers: int) -> AbstractContextManager[Advance]:
        """See :class:`Watcher`."""
        return self._bar(title, servers, goes_away=False)

    def attempt(self, title: str, servers: int) -> AbstractContextManager[Advance]:
        """See :class:`Watcher`."""
        return self._bar(title, servers, goes_away=True)

    @contextmanager
    def _bar(self, title: str, servers: int, *, goes_away: bool) -> Iterator[Advance]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(show_speed=True),
            TextColumn("{task.completed:.0f} of {task.total:.0f} servers"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self._console, transient=goes_away) as bars:
            # No markup: names of policies are the user's words.
            task = bars.add_task(title.replace("[", r"\["), total=servers)
            yield lambda more: bars.advance(task, more)


class ReplayLines:
    """Lines: some ten of them for a replay, one for an attempt."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @contextmanager
    def replay(self, title: str, servers: int) -> Iterator[Advance]:
        """See :class:`Watcher`."""
        done = told = 0

        def advance(more: int) -> None:
            nonlocal done, told
            done += more
            if done - told >= servers / LINES_PER_REPLAY or done == servers:
                told = done
                self._tell(f"{title}: {done} of {servers} servers")

        yield advance

    @contextmanager
    def attempt(self, title: str, servers: int) -> Iterator[Advance]:
        """See :class:`Watcher`."""
        self._tell(title)
        yield lambda _: None

    def _tell(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()
