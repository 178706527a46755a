"""The backends by URL scheme. A new backend needs a module and an entry here."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import cast

from innkeeper.store.backends.backend import Backend

# Not imported here, since the drivers of database servers are optional extras.
BACKENDS: Mapping[str, str] = {
    "sqlite": "innkeeper.store.backends.sqlite:Sqlite",
    "postgresql": "innkeeper.store.backends.postgresql:Postgresql",
    "mariadb": "innkeeper.store.backends.mariadb:Mariadb",
}


def of_url(url: str) -> Backend:
    """Return the backend for a URL.

    Raises ``ValueError`` for an unknown scheme or a missing driver.
    """
    # In "postgresql+psycopg://" the driver follows the plus.
    scheme = url.partition("://")[0].partition("+")[0]
    if scheme not in BACKENDS:
        raise ValueError(
            f"There is no backend for {scheme!r} databases. Supported: {', '.join(BACKENDS)}."
        )
    try:
        return cast(Backend, resolve_name(BACKENDS[scheme])())
    except ModuleNotFoundError as error:
        raise ValueError(
            f"The driver for {scheme!r} databases is not installed: "
            f"pip install 'innkeeper[{scheme}]' ({error})."
        ) from error
