"""What stops an agent: a signal, or the end of the program that started it.

Always true: a signal's handler takes no lock. It interrupts the main thread wherever that is,
and a lock that the main thread holds there would never come free.
"""

from __future__ import annotations

import os
import select
import signal
import threading

SIGNALS = (signal.SIGTERM, signal.SIGINT)
PARENT_PERIOD_S = 0.5


def is_orphan(parent: int | None) -> bool:
    """Whether the starting program, where one was named, is gone already."""
    # A killed parent tells nobody; its children then belong to another one.
    return parent is not None and os.getppid() != parent


def stop_by_signal_or_with(parent: int | None, stop: threading.Event) -> None:
    """Have ``stop`` set by the first signal, or soon after the end of ``parent``.

    Further signals change nothing. To be called in the main thread, once.
    """
    hearing, telling = os.pipe()

    def tell(_number: int, _frame: object) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        os.write(telling, b"\0")

    def watch() -> None:
        is_told = False
        while not is_told and not is_orphan(parent):
            timeout_s = None if parent is None else PARENT_PERIOD_S
            is_told = bool(select.select([hearing], [], [], timeout_s)[0])
        stop.set()

    threading.Thread(target=watch, name="stopping", daemon=True).start()
    for each in SIGNALS:
        signal.signal(each, tell)
