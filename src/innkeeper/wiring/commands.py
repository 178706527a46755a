"""The commands of the program, put together from the rooms."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from innkeeper.domain.slices import Settings
from innkeeper.entrypoints.api.identity import opening
from innkeeper.store import schema
from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.placement import audit as placement_audit
from innkeeper.wiring.serving import address_of, serve
from innkeeper.wiring.sources import RandomIds, now
from innkeeper.wiring.stores import DATABASE_FILE, connect, open_store


def run(command: str, settings: Settings, options: Mapping[str, Any]) -> int:
    """Carry out one command of the program."""
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
