"""What is kept of decisions about servers; read apart from servers, which are listed often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from innkeeper.store.tables.compute import servers
from innkeeper.store.transactions import Tx

_OF_SERVER = sa.select(servers.c.decision).where(servers.c.uuid == sa.bindparam("wanted"))


def of_server(tx: Tx, uuid: str) -> Mapping[str, Any] | None:
    """What is kept of the decision about a server, deleted or not; None if nothing is."""
    kept: Mapping[str, Any] | None = tx.execute(_OF_SERVER, {"wanted": uuid}).scalar()
    return kept
