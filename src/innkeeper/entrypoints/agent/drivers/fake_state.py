"""The fake driver's state: which servers are on which hosts, and their power states.

Always true: a change is in a file before the call returns. It is not flushed to the disk each
time; a power failure may lose it.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

STATE_FILE = "fake.sqlite3"
LOCK_TIMEOUT_S = 10.0
RUNNING, PAUSED, SHUT_DOWN = 1, 3, 4
"""Power states as the service numbers them."""


class FakeState:
    """A file with a row for each server on each host."""

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        path = folder / STATE_FILE
        # SQLite gives its other files the permissions of this one.
        path.touch(mode=0o600)
        self._rows = sqlite3.connect(
            path, check_same_thread=False, isolation_level=None, timeout=LOCK_TIMEOUT_S
        )
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("PRAGMA synchronous=NORMAL")
        self._rows.execute(
            "CREATE TABLE IF NOT EXISTS servers (id TEXT, host TEXT, PRIMARY KEY (id, host))"
        )
        known = {row[1] for row in self._rows.execute("PRAGMA table_info(servers)")}
        if "power" not in known:
            # The file is from a release in which all servers were running.
            self._rows.execute(
                f"ALTER TABLE servers ADD COLUMN power INTEGER NOT NULL DEFAULT {RUNNING}"
            )
        self._rows.execute("CREATE TABLE IF NOT EXISTS stopped (migration TEXT PRIMARY KEY)")

    def all(self) -> list[tuple[str, str, int]]:
        """Rows of host, server and power state."""
        with self._lock:
            query = "SELECT host, id, power FROM servers ORDER BY id"
            return self._rows.execute(query).fetchall()

    def _has(self, server_id: str, host: str) -> bool:
        query = "SELECT 1 FROM servers WHERE id = ? AND host = ?"
        return self._rows.execute(query, (server_id, host)).fetchone() is not None

    def put(self, server_id: str, host: str, power: int) -> None:
        """Add a server to a host; an existing one stays as it is."""
        with self._lock:
            self._rows.execute(
                "INSERT OR IGNORE INTO servers (id, host, power) VALUES (?, ?, ?)",
                (server_id, host, power),
            )

    def switch(self, server_id: str, host: str, power: int) -> bool:
        """Set a server's power state; False if it is not there."""
        with self._lock:
            found = self._rows.execute(
                "UPDATE servers SET power = ? WHERE id = ? AND host = ?", (power, server_id, host)
            )
            return found.rowcount == 1

    def drop(self, server_id: str, host: str) -> None:
        """Remove a server from a host."""
        with self._lock:
            self._drop(server_id, host)

    def _drop(self, server_id: str, host: str) -> None:
        self._rows.execute("DELETE FROM servers WHERE id = ? AND host = ?", (server_id, host))

    def send(self, server_id: str, host: str, migration: str) -> bool:
        """Remove a server that has migrated; False if its migration was stopped."""
        with self._lock:
            if self._is_stopped(migration):
                return False
            self._drop(server_id, host)
            return True

    def is_stopped(self, migration: str) -> bool:
        """Whether a migration was stopped."""
        with self._lock:
            return self._is_stopped(migration)

    def _is_stopped(self, migration: str) -> bool:
        query = "SELECT 1 FROM stopped WHERE migration = ?"
        return self._rows.execute(query, (migration,)).fetchone() is not None

    def stop(self, server_id: str, host: str, migration: str) -> bool:
        """Stop a migration; False if its server has left."""
        with self._lock:
            if not self._has(server_id, host):
                return False
            self._rows.execute("INSERT OR IGNORE INTO stopped VALUES (?)", (migration,))
            return True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._rows.close()
