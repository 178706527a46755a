"""The fake driver's state, with the servers on each host, their power states and their volumes.

Always true: a change is written to a file before the call returns. The file is not flushed each
time, so a power failure may lose changes.
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
        # The lock is reentrant, because ``send`` calls other methods that lock.
        self._lock = threading.RLock()
        path = folder / STATE_FILE
        # SQLite gives its other files the permissions of this file.
        path.touch(mode=0o600)
        self._rows = sqlite3.connect(
            path, check_same_thread=False, isolation_level=None, timeout=LOCK_TIMEOUT_S
        )
        self._run("PRAGMA journal_mode=WAL")
        self._run("PRAGMA synchronous=NORMAL")
        self._run("CREATE TABLE IF NOT EXISTS servers (id TEXT, host TEXT, PRIMARY KEY (id, host))")
        if "power" not in {row[1] for row in self._run("PRAGMA table_info(servers)")}:
            # The file is from a release in which all servers were running.
            self._run(f"ALTER TABLE servers ADD COLUMN power INTEGER NOT NULL DEFAULT {RUNNING}")
        self._run("CREATE TABLE IF NOT EXISTS stopped (migration TEXT PRIMARY KEY)")
        self._run("CREATE TABLE IF NOT EXISTS volumes (id TEXT PRIMARY KEY, size_gb INTEGER)")
        self._run(
            "CREATE TABLE IF NOT EXISTS connections "
            "(server TEXT, host TEXT, volume TEXT, PRIMARY KEY (server, host, volume))"
        )

    def _run(self, sql: str, *values: object) -> sqlite3.Cursor:
        return self._rows.execute(sql, values)

    def all(self) -> list[tuple[str, str, int]]:
        """Return all servers, as rows of (host, server id, power state)."""
        with self._lock:
            return self._run("SELECT host, id, power FROM servers ORDER BY id").fetchall()

    def put(self, server_id: str, host: str, power: int) -> None:
        """Add a server to a host. A server that is already there stays unchanged."""
        sql = "INSERT OR IGNORE INTO servers (id, host, power) VALUES (?, ?, ?)"
        with self._lock:
            self._run(sql, server_id, host, power)

    def switch(self, server_id: str, host: str, power: int) -> bool:
        """Set a server's power state. Returns False if the server is not on the host."""
        sql = "UPDATE servers SET power = ? WHERE id = ? AND host = ?"
        with self._lock:
            return self._run(sql, power, server_id, host).rowcount == 1

    def drop(self, server_id: str, host: str) -> None:
        """Remove a server from a host, with the connections of its volumes."""
        with self._lock:
            self._run("DELETE FROM connections WHERE server = ? AND host = ?", server_id, host)
            self._run("DELETE FROM servers WHERE id = ? AND host = ?", server_id, host)

    def make_volume(self, volume: str, size_gb: object) -> None:
        """Add a volume. A volume that is already there stays unchanged."""
        with self._lock:
            self._run("INSERT OR IGNORE INTO volumes VALUES (?, ?)", volume, size_gb)

    def grow_volume(self, volume: str, size_gb: object) -> None:
        """Set the size of a volume. Does nothing if another agent has made the volume."""
        with self._lock:
            self._run("UPDATE volumes SET size_gb = ? WHERE id = ?", size_gb, volume)

    def drop_volume(self, volume: str) -> None:
        """Remove a volume."""
        with self._lock:
            self._run("DELETE FROM volumes WHERE id = ?", volume)

    def volumes(self) -> list[tuple[str, int]]:
        """Return all volumes, as rows of (volume id, size in GiB)."""
        with self._lock:
            return self._run("SELECT id, size_gb FROM volumes ORDER BY id").fetchall()

    def connect(self, server_id: str, host: str, volume: str) -> bool:
        """Connect a volume to a server. Returns False if the server is not on the host."""
        sql = "SELECT 1 FROM servers WHERE id = ? AND host = ?"
        with self._lock:
            if self._run(sql, server_id, host).fetchone() is None:
                return False
            insert = "INSERT OR IGNORE INTO connections VALUES (?, ?, ?)"
            self._run(insert, server_id, host, volume)
            return True

    def disconnect(self, server_id: str, host: str, volume: str) -> None:
        """Disconnect a volume from a server."""
        sql = "DELETE FROM connections WHERE server = ? AND host = ? AND volume = ?"
        with self._lock:
            self._run(sql, server_id, host, volume)

    def connections(self, server_id: str, host: str) -> list[str]:
        """Return the volumes that are connected to a server."""
        sql = "SELECT volume FROM connections WHERE server = ? AND host = ? ORDER BY volume"
        with self._lock:
            return [row[0] for row in self._run(sql, server_id, host)]

    def send(self, server_id: str, host: str, migration: str) -> bool:
        """Remove a server that has migrated. Returns False if its migration was aborted."""
        with self._lock:
            if self.is_stopped(migration):
                return False
            self.drop(server_id, host)
            return True

    def is_stopped(self, migration: str) -> bool:
        """Return whether a migration was aborted."""
        with self._lock:
            found = self._run("SELECT 1 FROM stopped WHERE migration = ?", migration)
            return found.fetchone() is not None

    def stop(self, server_id: str, host: str, migration: str) -> bool:
        """Abort a migration. Returns False if its server has already moved."""
        sql = "SELECT 1 FROM servers WHERE id = ? AND host = ?"
        with self._lock:
            if self._run(sql, server_id, host).fetchone() is None:
                return False
            self._run("INSERT OR IGNORE INTO stopped VALUES (?)", migration)
            return True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._rows.close()
