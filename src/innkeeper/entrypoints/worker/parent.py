"""The ties between a program and those that it starts: how each learns that it is to end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

SIGNALS = (signal.SIGTERM, signal.SIGINT)
PERIOD_S = 0.5


def stop_with(parent: int, stop: Callable[[], None]) -> None:
    """Have ``stop`` called soon after the end of the program that started this one.

    A killed parent tells nobody; its children then belong to another one.
    """

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(PERIOD_S)
        stop()

    threading.Thread(target=watch, name="parent", daemon=True).start()


def end_on_signals() -> None:
    """Have a signal to stop end this process at once, whatever it does or waits for.

    For the time in which there is nothing yet that must be finished: a database undoes what was
    not committed. To be called in the main thread; whoever has something to finish later hears
    signals otherwise from then on.
    """
    for each in SIGNALS:
        # No exception, which would end nothing where it is raised in the wrong moment, such as
        # in a callback; nor the usual way of dying, which the first process of a container has
        # not.
        signal.signal(each, lambda _number, _frame: os._exit(0))


class Signals:
    """What this process was told from outside. To be made in the main thread, once.

    Always true: the handler takes no lock. It interrupts the main thread wherever that is, and
    a lock that the main thread holds there would never come free.
    """

    def __init__(self) -> None:
        self._hearing, telling = os.pipe()

        def tell(_number: int, _frame: object) -> None:
            for each in SIGNALS:
                signal.signal(each, signal.SIG_IGN)
            os.write(telling, b"\0")

        for each in SIGNALS:
            signal.signal(each, tell)

    def wait(self) -> None:
        """Sleep until the first signal to stop; further ones change nothing."""
        os.read(self._hearing, 1)
