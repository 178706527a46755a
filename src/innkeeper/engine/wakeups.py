"""Wakes requests that wait for a commit.

Always true: a wake-up is not lost if it comes between the start of a request's listening and its
wait.

A wake-up may come late, because this process may notice the commits of other processes late.
Therefore, waiting requests also poll.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

Waiter = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class Wakeups:
    """Wakes waiting requests by topic and name. Any thread may send a wake-up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[tuple[str, str], set[Waiter]] = {}
        self._is_stopping = False
        self._has_come = threading.Condition(self._lock)

    @property
    def is_stopping(self) -> bool:
        """Whether the service is stopping. If so, waiting requests must give up."""
        return self._is_stopping

    @contextmanager
    def listen(self, topic: str, name: str) -> Iterator[asyncio.Event]:
        """Return a context manager whose event is set by each wake-up for the name."""
        event = asyncio.Event()
        waiter = (asyncio.get_running_loop(), event)
        key = (topic, name)
        with self._lock:
            self._waiters.setdefault(key, set()).add(waiter)
            self._has_come.notify_all()
        try:
            yield event
        finally:
            with self._lock:
                self._waiters[key].discard(waiter)
                if not self._waiters[key]:
                    del self._waiters[key]

    def wake(self, topic: str, names: frozenset[str]) -> None:
        """Wake the requests that listen for one of the names; see ``Store.listen``."""
        with self._lock:
            woken = [each for name in names for each in self._waiters.get((topic, name), ())]
        _wake(woken)

    def wake_all(self, topic: str) -> None:
        """Wake the requests that listen for any name of a topic."""
        with self._lock:
            heard = [waiters for key, waiters in self._waiters.items() if key[0] == topic]
            woken = [each for waiters in heard for each in waiters]
        _wake(woken)

    def has_listener(self, topic: str) -> bool:
        """Return whether a request listens for any name of the topic."""
        with self._lock:
            return self._is_awaited(topic)

    def await_listener(self, topic: str) -> bool:
        """Block until a request listens for any name of the topic, or the service is stopping.

        Returns whether a request listens.
        """
        with self._lock:
            self._has_come.wait_for(lambda: self._is_stopping or self._is_awaited(topic))
            return self._is_awaited(topic)

    def _is_awaited(self, topic: str) -> bool:
        return any(key[0] == topic for key in self._waiters)

    def stop(self) -> None:
        """Wake all requests, because the service is stopping."""
        with self._lock:
            self._is_stopping = True
            self._has_come.notify_all()
            woken = [each for waiters in self._waiters.values() for each in waiters]
        _wake(woken)


def _wake(waiters: Iterable[Waiter]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Event]] = {}
    for loop, event in waiters:
        by_loop.setdefault(loop, []).append(event)
    for loop, events in by_loop.items():
        try:
            # One call wakes all waiters of a loop, because each call costs a system call.
            loop.call_soon_threadsafe(_set, events)
        except RuntimeError:
            # The loop is closed, and its requests are gone. The sender has already committed, and
            # must not get an error.
            continue


def _set(events: Iterable[asyncio.Event]) -> None:
    for event in events:
        event.set()
