"""What the engines of all database servers have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.pool import QueuePool

RECYCLE_S = 1_800
"""A connection is replaced when it is older: memory that a server has grown for it comes back,
and an address that moved is looked up again."""


def encode_json(thing: Any) -> str:
    """How JSON is written into columns."""
    return msgspec.json.encode(thing).decode()


def engine(
    url: sa.URL, connections_max: int, wait_s: float, arguments: Mapping[str, Any], **more: Any
) -> sa.Engine:
    """An engine with so many connections at most; who finds none free waits for one.

    A connection is asked for a sign of life before each use: after a restart or a fail-over
    of the database, all those in the pool are dead.
    """
    return sa.create_engine(
        url,
        poolclass=QueuePool,
        pool_size=connections_max,
        max_overflow=0,
        pool_timeout=wait_s,
        pool_pre_ping=True,
        pool_recycle=RECYCLE_S,
        # The one that was used last is used next: those that were needed only once time out.
        pool_use_lifo=True,
        connect_args=dict(arguments),
        json_serializer=encode_json,
        json_deserializer=msgspec.json.decode,
        # Hashes of passwords, the key that signs tokens, users' data: none of it may get
        # into a log by way of an error.
        hide_parameters=True,
        **more,
    )
