"""Create the engines of database servers, and encode JSON columns. The backends share this code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.pool import QueuePool

from innkeeper.store.backends.backend import Engines

RECYCLE_S = 1_800
"""The age at which connections are replaced. A replacement frees the server's memory, and resolves
the server's address again."""
WRITERS_MAX = 2
"""The number of writing connections: one for the decision thread, and one for another concurrent
writer."""


def encode_json(value: Any) -> str:
    """Encode a column's value as JSON."""
    return msgspec.json.encode(value).decode()


def engines(url: sa.URL, readers_max: int, wait_s: float, arguments: Mapping[str, Any]) -> Engines:
    """Create both pools of a database server.

    The modules of the backends explain the isolation levels.
    """
    return Engines(
        reading=_engine(url, readers_max, wait_s, arguments, "REPEATABLE READ"),
        writing=_engine(url, WRITERS_MAX, wait_s, arguments, "READ COMMITTED"),
    )


def _engine(
    url: sa.URL, connections_max: int, wait_s: float, arguments: Mapping[str, Any], isolation: str
) -> sa.Engine:
    """Create an engine, in which a thread waits up to ``wait_s`` for a free connection.

    Each connection is tested before use, since a fail-over leaves dead connections in the pool.
    """
    return sa.create_engine(
        url,
        poolclass=QueuePool,
        pool_size=connections_max,
        max_overflow=0,
        pool_timeout=wait_s,
        pool_pre_ping=True,
        pool_recycle=RECYCLE_S,
        # Last in, first out, so that spare connections time out.
        pool_use_lifo=True,
        connect_args=dict(arguments),
        json_serializer=encode_json,
        json_deserializer=msgspec.json.decode,
        # Errors are logged, and parameters can be password hashes, signing keys or user data.
        hide_parameters=True,
        isolation_level=isolation,
    )
