"""What the fake driver remembers: which servers are on which hosts, and how they are powered.

Always true: what it remembers is in a file before it is answered. It is not flushed to the disk
each time; what a power failure takes from it, nobody misses.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

STATE_FILE = "fake.sqlite3"
LOCK_TIMEOUT_S = 10.0
RUNNING, PAUSED, SHUT_DOWN = 1, 3, 4
"""Power states as the service counts them."""


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
            # A file from before servers could be anything but running.
            self._rows.execute(
                f"ALTER TABLE servers ADD COLUMN power INTEGER NOT NULL DEFAULT {RUNNING}"
            )
        self._rows.execute("CREATE TABLE IF NOT EXISTS stopped (migration TEXT PRIMARY KEY)")

    def all(self) -> list[tuple[str, str, int]]:
        """Rows of host, server and power state."""
        with self._lock:
            query = "SELECT host, id, power FROM servers ORDER BY id"
            return self._rows.execute(query).fetchall()

    def has(self, server_id: str, host: str) -> bool:
        """Whether a server is on a host, or something of it."""
        with self._lock:
            return self._has(server_id, host)

    def _has(self, server_id: str, host: str) -> bool:
        query = "SELECT 1 FROM servers WHERE id = ? AND host = ?"
        return self._rows.execute(query, (server_id, host)).fetchone() is not None

    def put(self, server_id: str, host: str, power: int) -> None:
        """Have a server on a host; one that is there already stays as it is."""
        with self._lock:
            self._rows.execute(
                "INSERT OR IGNORE INTO servers (id, host, power) VALUES (?, ?, ?)",
                (server_id, host, power),
            )

    def switch(self, server_id: str, host: str, power: int) -> bool:
        """Power a server; False if it is not there."""
        with self._lock:
            found = self._rows.execute(
                "UPDATE servers SET power = ? WHERE id = ? AND host = ?", (power, server_id, host)
            )
            return found.rowcount == 1

    def drop(self, server_id: str, host: str) -> None:
        """Have nothing of a server on a host."""
        with self._lock:
            self._drop(server_id, host)

    def _drop(self, server_id: str, host: str) -> None:
        self._rows.execute("DELETE FROM servers WHERE id = ? AND host = ?", (server_id, host))

    def send(self, server_id: str, host: str, migration: str) -> bool:
        """Let a server go, unless its migration was stopped; then False."""
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
        """Stop a migration, if its server is still here; else False."""
        with self._lock:
            if not self._has(server_id, host):
                return False
            self._rows.execute("INSERT OR IGNORE INTO stopped VALUES (?)", (migration,))
            return True

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._rows.close()
