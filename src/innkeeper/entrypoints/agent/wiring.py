"""The agent's composition root. It builds the login, the driver and the loop from the options."""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import structlog

from innkeeper.clients import logins
from innkeeper.clients.agents import AgentApi
from innkeeper.clients.certificates import trust_of
from innkeeper.clients.logins import GivenToken, TokenFile, TokenSource
from innkeeper.clients.streams import LosingStream
from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.agent.drivers.catalogue import DRIVERS
from innkeeper.entrypoints.agent.loop import AgentLoop
from innkeeper.terminal.ending import Signals, is_orphan, report_failure, stop_with

LOCK_FILE = "lock"


def run(options: Mapping[str, Any]) -> int:
    """Run an agent until it is asked to stop. Returns the exit status."""
    parent = options["with_parent"]
    if is_orphan(parent):
        return 0
    _set_up_logs()
    state_dir = Path(options["state_dir"])
    try:
        login = _login(options)
        trust = trust_of(
            options["ca_file"] or os.environ.get("OS_CACERT"),
            options["cert_file"],
            options["key_file"],
        )
        # The file stays open until the agent ends, so that it stays locked.
        lock = _take_lock(state_dir)
    except Invalid as refusal:
        return report_failure("agent", refusal.message)
    except OSError as error:
        return report_failure("agent", str(error))
    stop = _stop_event(parent)
    driver = DRIVERS[options["driver"]](options, state_dir, stop.wait)
    agent = AgentLoop(
        AgentApi(options["url"], login, trust),
        driver,
        name=options["name"],
        driver_name=options["driver"],
        threads=options["threads"],
        stop=stop,
    )
    agent.run()
    lock.close()
    return 0


def _stop_event(parent: int | None) -> threading.Event:
    """Return an event that is set at the first signal to stop, or when the parent process ends."""
    stop = threading.Event()
    signals = Signals()

    def watch() -> None:
        signals.wait()
        stop.set()

    threading.Thread(target=watch, name="stopping", daemon=True).start()
    if parent is not None:
        stop_with(parent, stop.set)
    return stop


def _login(options: Mapping[str, Any]) -> TokenSource:
    if options["token"]:
        return GivenToken(options["token"])
    if options["token_file"]:
        return TokenFile(Path(options["token_file"]))
    environ = dict(os.environ)
    if options["ca_file"]:
        environ["OS_CACERT"] = options["ca_file"]
    return logins.from_environment(environ)


def _take_lock(state_dir: Path) -> IO[str]:
    """Lock the state folder, because two agents with the same state would contradict each other.

    Raises :class:`Invalid` if another agent has locked the folder.
    """
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = state_dir / LOCK_FILE
    path.touch(mode=0o600)
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise Invalid(
            f"Another agent uses the folder {state_dir}. Use another --state-dir."
        ) from error
    return file


def _set_up_logs() -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(bool_as_flag=False),
        ],
        # structlog calls only ``write`` and ``flush``.
        logger_factory=structlog.WriteLoggerFactory(
            LosingStream(sys.__stderr__)  # type: ignore[arg-type]
        ),
        cache_logger_on_first_use=True,
    )
