"""What the commands of the program do with the parts: serve, audit, care for the database.

Always true: a command gives its exit status, and tells its findings on the standard output.
What its surroundings refuse is raised as :class:`SettingsError`.
"""

from __future__ import annotations

import gc
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from innkeeper.domain.errors import Refusal
from innkeeper.domain.slices import Settings
from innkeeper.entrypoints.api.identity import opening
from innkeeper.entrypoints.api.listening import Listening, address_of
from innkeeper.entrypoints.api.logs import set_up_logs
from innkeeper.entrypoints.worker.child import Child
from innkeeper.settings import SettingsError
from innkeeper.store import schema
from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.placement import audit as placement_audit
from innkeeper.wiring import (
    DATABASE_FILE,
    RandomIds,
    Service,
    connect,
    demo_agent,
    now,
    open_store,
)

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep the interpreter from others that want it. Python's 5 ms would be
the waiting time of most answers, since deciding and answering are two threads."""
GARBAGE_THRESHOLD = 50_000
"""Containers that may be made before the collector looks for circles among them. At Python's
700, an answer with a thousand candidates is looked through many times while it is made."""


def run(command: str, settings: Settings, options: Mapping[str, Any]) -> int:
    """Carry out one command of the program.

    Raises :class:`SettingsError` for what its surroundings refuse: an address that cannot be
    listened on, a database that is none, a disk that is full.
    """
    try:
        return _run(command, settings, options)
    except SQLAlchemyError as error:
        why = getattr(error, "orig", None) or error
        raise SettingsError(f"Cannot use the database: {why}.") from error
    except Refusal as refusal:
        raise SettingsError(f"Cannot use the database: {refusal.message}") from refusal
    except OSError as error:
        raise SettingsError(str(error).removesuffix(".") + ".") from error


def _run(command: str, settings: Settings, options: Mapping[str, Any]) -> int:
    if command == "serve":
        return serve(settings, options)
    if command == "audit":
        return audit(settings)
    if command == "db":
        return upgrade(settings)
    if command == "admin-password":
        return reset_admin_password(settings)
    raise AssertionError(f"no such command: {command}")


def reset_admin_password(settings: Settings) -> int:
    """Give the administrator a new password, and say where it is written."""
    store = open_store(settings)
    try:
        path = opening.reset_password(
            store,
            settings,
            address_of(settings.serving.host, settings.serving.port),
            RandomIds(),
            secrets.token_urlsafe,
            now(),
        )
    finally:
        store.dispose()
    sys.stdout.write(f"The administrator's new password is in {path.resolve()}.\n")
    return 0


def audit(settings: Settings) -> int:
    """Check every room's invariants; one line per finding, and status 1 if there are any."""
    database = Path(settings.storing.data_dir) / DATABASE_FILE
    if settings.storing.database_url is None and not database.exists():
        sys.stderr.write(f"innkeeper: there is no database at {database}\n")
        return 2
    store = connect(settings)
    try:
        with store.read() as tx:
            if schema.revision(tx) != schema.newest_revision():
                sys.stderr.write("innkeeper: the database is not at this program's schema\n")
                return 2
            found = [*placement_audit.findings(tx), *compute_audit.findings(tx)]
    finally:
        store.dispose()
    for each in found:
        sys.stdout.write(f"{each}\n")
    sys.stdout.write(f"{len(found)} findings\n")
    return 1 if found else 0


def upgrade(settings: Settings) -> int:
    """Bring the schema up, and say what was done."""
    store = connect(settings)
    try:
        has_moved = schema.upgrade(store, now())
    finally:
        store.dispose()
    what = "brought up to" if has_moved else "already at"
    sys.stdout.write(f"The database is {what} revision {schema.newest_revision()}.\n")
    return 0


def serve(settings: Settings, options: Mapping[str, Any]) -> int:
    """Serve until told to stop; requests in flight are answered first."""
    if options["demo_hosts"] < 0:
        raise SettingsError("--demo-hosts is a number of hosts.")
    if options["demo_hosts"] and "compute" not in settings.serving.apis:
        raise SettingsError("--demo-hosts needs the Compute API, which is not served.")
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    set_up_logs(settings.serving)
    service = Service(settings)
    service.start()
    # What is there now stays: the collector need not go through it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    listening: Listening | None = None
    agent: Child | None = None
    try:
        listening = Listening(service.app, settings.serving, service.site.bells.stop)
        login = service.prepare_logins(listening.address)
        sys.stderr.write(f"Innkeeper serves on {listening.address}\n")
        if login is not None:
            sys.stderr.write(opening.how_to_log_in(login))
        if options["demo_hosts"]:
            agent = demo_agent(service, listening.address, options["demo_hosts"])
            agent.start()
        listening.run()
    finally:
        if agent is not None:
            agent.stop()
        service.stop()
        if listening is not None:
            listening.close()
    return 0
