"""The agent's composition root: options and environment become a login, a driver, a loop."""

from __future__ import annotations

import fcntl
import os
import ssl
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
from innkeeper.entrypoints.agent.stopping import is_orphan, stop_by_signal_or_with

LOCK_FILE = "lock"
WRONG_USE = 2


def run(options: Mapping[str, Any]) -> int:
    """Be an agent until told to stop; gives the exit status."""
    parent = options["with_parent"]
    if is_orphan(parent):
        return 0
    _set_up_logs()
    stop = threading.Event()
    state_dir = Path(options["state_dir"])
    try:
        login = _login(options)
        trust = _trust(options)
        # Open for as long as the agent lives, and with it the lock.
        lock = _take_lock(state_dir)
    except (Invalid, OSError) as error:
        sys.stderr.write(f"innkeeper agent: {error}\n")
        return WRONG_USE
    stop_by_signal_or_with(parent, stop)
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


def _login(options: Mapping[str, Any]) -> TokenSource:
    if options["token"]:
        return GivenToken(options["token"])
    if options["token_file"]:
        return TokenFile(Path(options["token_file"]))
    environ = dict(os.environ)
    if options["ca_file"]:
        environ["OS_CACERT"] = options["ca_file"]
    return logins.from_environment(environ)


def _trust(options: Mapping[str, Any]) -> ssl.SSLContext:
    """Whom to believe to be the service, and how to prove to it who the agent is."""
    return trust_of(
        options["ca_file"] or os.environ.get("OS_CACERT"), options["cert_file"], options["key_file"]
    )


def _take_lock(state_dir: Path) -> IO[str]:
    """Two agents with one memory would tell the service different things."""
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = state_dir / LOCK_FILE
    path.touch(mode=0o600)
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise Invalid(f"Another agent uses the folder {state_dir}.") from error
    return file


def _set_up_logs() -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(bool_as_flag=False),
        ],
        # Only its two methods are used.
        logger_factory=structlog.WriteLoggerFactory(
            LosingStream(sys.__stderr__)  # type: ignore[arg-type]
        ),
        cache_logger_on_first_use=True,
    )
