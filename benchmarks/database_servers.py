"""Starts temporary database servers to measure on: PostgreSQL, and three Galera nodes.

Always true: the servers are started as the tests start them, with the settings of crash tests. So
every commit is flushed to the disk before it is acknowledged. The data is in the system's folder
for temporary files.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Protocol

import pytest

from tests.support.servers import galera, packages, postgresql


class Missing(Exception):
    """A server is not installed on this machine; the message says how to install it."""


class DatabaseServer(Protocol):
    """The servers of one kind of database, with their databases."""

    def start(self) -> None:
        """Start all servers, and wait until they answer."""

    def fresh(self) -> str:
        """Return the address of a new, empty database."""

    def close(self) -> None:
        """Stop all servers, and remove their data."""


SERVERS: Mapping[str, Callable[[], DatabaseServer]] = {
    "postgresql": lambda: postgresql.Postgresql(**postgresql.SAFE),
    "galera": galera.Galera,
}
PROGRAMS = (("postgres", "postgresql", postgresql.PLACE), ("mariadbd", "mariadb-server", ""))


@contextmanager
def started(name: str) -> Iterator[DatabaseServer]:
    """Run the servers of one kind until the block ends.

    Raises :class:`Missing` if they are not installed.
    """
    with _or_missing():
        server = SERVERS[name]()
    try:
        with _or_missing():
            server.start()
        yield server
    finally:
        server.close()


def versions() -> Iterator[str]:
    """Yield the versions of the installed programs."""
    for program, package, place in PROGRAMS:
        with suppress(Missing), _or_missing():
            found = packages.find(program, package, beside=place)
            reported = subprocess.check_output([found, "--version"], text=True)
            yield " ".join(reported.partition(" for ")[0].split())


@contextmanager
def _or_missing() -> Iterator[None]:
    try:
        yield
    except pytest.skip.Exception as missing:
        raise Missing(str(missing)) from missing
