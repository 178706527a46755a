"""The kinds of databases, by the first word of their URLs. A new one is a module and a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from innkeeper.store.backends.backend import Backend
from innkeeper.store.backends.mariadb import NAME as MARIADB
from innkeeper.store.backends.mariadb import Mariadb
from innkeeper.store.backends.postgresql import NAME as POSTGRESQL
from innkeeper.store.backends.postgresql import Postgresql
from innkeeper.store.backends.sqlite import NAME as SQLITE
from innkeeper.store.backends.sqlite import Sqlite

BACKENDS: Mapping[str, Callable[[], Backend]] = {
    SQLITE: Sqlite,
    POSTGRESQL: Postgresql,
    MARIADB: Mariadb,
}


def of_url(url: str) -> Backend:
    """The backend for a URL; raises ``ValueError`` where there is none."""
    # "postgresql+psycopg://" names a driver behind the plus.
    scheme = url.partition("://")[0].partition("+")[0]
    if scheme not in BACKENDS:
        raise ValueError(
            f"There is no backend for {scheme!r} databases. There are: {', '.join(BACKENDS)}."
        )
    return BACKENDS[scheme]()
