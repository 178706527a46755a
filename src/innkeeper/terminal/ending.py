"""How programs end: on a signal, with the program that started them, or on an error.

Always true: a signal handler takes no lock. A handler interrupts the main thread at any point. If
the main thread held the lock at that point, the handler would wait forever.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from io import TextIOWrapper

from innkeeper.domain.errors import Refusal

SIGNALS = (signal.SIGTERM, signal.SIGINT)
PARENT_PERIOD_S = 0.5
FAILED = 2
"""The exit status of a command that failed or was used wrongly."""
INTERRUPTED = 130
"""The exit status that shells expect from a program ended by Ctrl-C."""


def is_orphan(parent: int | None) -> bool:
    """Return whether ``parent`` is given, and is no longer the parent of this process."""
    # A killed parent cannot notify its children, but the system gives them another parent.
    return parent is not None and os.getppid() != parent


def stop_with(parent: int, stop: Callable[[], object]) -> None:
    """Call ``stop`` in another thread, soon after the process ``parent`` has ended."""

    def watch() -> None:
        pause = threading.Event()
        while not is_orphan(parent):
            pause.wait(PARENT_PERIOD_S)
        stop()

    threading.Thread(target=watch, name="parent", daemon=True).start()


def end_on_signals() -> None:
    """End this process at once on a signal; must be called in the main thread.

    Call this at the start of a program, when there is no work to finish yet. The database rolls
    back uncommitted changes. Later, :class:`Signals` replaces these handlers.
    """
    for each in SIGNALS:
        # The handler raises no exception, because a callback may swallow it. The default action
        # would not be enough, because it does not end the first process of a container.
        signal.signal(each, lambda _number, _frame: os._exit(0))


class Signals:
    """Waits for a signal to stop. Must be created once, in the main thread."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()

        def notify(_number: int, _frame: object) -> None:
            for each in SIGNALS:
                signal.signal(each, signal.SIG_IGN)
            os.write(writing, b"\0")

        for each in SIGNALS:
            signal.signal(each, notify)

    def wait(self) -> None:
        """Block until the first signal to stop; later signals are ignored."""
        os.read(self._reading, 1)


def show_any_name() -> None:
    """Let output contain characters that the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Discard unwritten output, so that the interpreter prints no error when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report_failure(command: str, reason: str) -> int:
    """Write why a command failed; returns its exit status."""
    sys.stderr.write(f"innkeeper {command}: {reason}\n")
    return FAILED


def run_command(
    command: str, act: Callable[[], int], *, closed: int, memory: str, interrupted: str
) -> int:
    """Run a command, and turn its errors into messages and exit statuses.

    ``closed`` is the status if the reader closes the output, as ``head`` does. ``memory`` and
    ``interrupted`` are the messages for a lack of memory and for Ctrl-C.
    """
    show_any_name()
    try:
        status = act()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        discard_output()
        return closed
    except Refusal as refusal:
        return report_failure(command, refusal.message)
    except OSError as error:
        return report_failure(command, str(error))
    except MemoryError:
        return report_failure(command, memory)
    except KeyboardInterrupt:
        report_failure(command, interrupted)
        return INTERRUPTED
