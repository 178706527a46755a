"""Describes the machine, the program and the database, on which the figures of a run depend.

Always true: a description contains no path, user or address, so records can be published.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sqlite3
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from innkeeper.store.transactions import Store

PROJECT = Path(__file__).resolve().parents[1]
LIBRARIES = ("msgspec", "numpy", "SQLAlchemy", "uvicorn", "httptools", "uvloop")
FLUSHES = 200
FLUSH_BYTES = 8192
"""About as many bytes as one boot writes to SQLite's log."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine on which a run's figures were measured."""

    cpu: str
    cores: int
    memory_gb: int
    system: str
    python: str
    libraries: dict[str, str]
    sqlite: str
    commit: str
    flush_us: float
    """Median microseconds to write a little and flush it to the disk. A durable write cannot be
    faster. If it takes only a few microseconds, the disk acknowledges before it has written."""

    @property
    def kind(self) -> str:
        """The kind of machine. Only runs on machines of the same kind are compared."""
        return f"{self.cpu}, {self.cores} cores, Python {self.python}"

    def facts(self) -> dict[str, Any]:
        """Return the fields of a record."""
        return asdict(self)


def look(directory: Path) -> Machine:
    """Examine this machine, and the disk under ``directory``."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)),
        memory_gb=round(pages / 2**30),
        system=f"{platform.system()} {platform.release().split('-')[0]}",
        python=platform.python_version(),
        libraries={name: version for name in LIBRARIES if (version := _version(name))},
        sqlite=sqlite3.sqlite_version,
        commit=_commit(),
        flush_us=flush_us(directory),
    )


def database_settings(store: Store) -> dict[str, str]:
    """Return the settings for durability and speed that the service's connections use."""
    names = ("journal_mode", "synchronous", "foreign_keys", "cache_size", "wal_autocheckpoint")
    with store.read() as tx:
        return {name: str(tx.execute(sa.text(f"PRAGMA {name}")).scalar()) for name in names}


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],  # noqa: S607 - whichever git the developer uses
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip()

    changed = "+changes" if git("status", "--porcelain", "--", "src") else ""
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + changed


def flush_us(directory: Path) -> float:
    """Return the median microseconds to write a little to a file there and flush it to the disk."""
    took: list[float] = []
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        for _ in range(FLUSHES):
            file.write(bytes(FLUSH_BYTES))
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - started)
    return sorted(took)[FLUSHES // 2] * 1e6
