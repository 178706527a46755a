"""Builds the object with which a process reaches other processes that serve the same database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import structlog

from innkeeper.domain.errors import Conflict
from innkeeper.domain.ids import Clock
from innkeeper.domain.slices import Settings, Storing
from innkeeper.engine.database import Database
from innkeeper.engine.leader.connection import Identity
from innkeeper.engine.leader.leadership import Peer, another_leads
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.identity import key_files
from innkeeper.systems.identity import secret_boxes

LOG = structlog.get_logger("innkeeper.leader")
SECRET = "peers"  # noqa: S105 - the name of one
"""The name of the secret that the processes of a database share."""
SECRET_BYTES = 32
PORTS_MAX = 1_000
"""The maximum number of ports to try, because each process on a machine needs a port of its own."""
PORTS_END = 65536


def peer_of(
    settings: Settings,
    database: Database,
    version: str,
    holder: str,
    draw: Callable[[int], bytes],
    clock: Clock,
) -> Peer | None:
    """Return the object with which this process exchanges requests with other processes.

    Returns ``None`` if the process must not or cannot forward writes.

    A process exchanges requests only with processes of the same ``version``. ``holder`` is the
    random id of this process.
    """
    peering = settings.peering
    if not settings.is_one_of_several:
        _warn_of_others(database)
        return None
    if not peering.forward_writes:
        return None
    secret = _secret(database, settings.storing, draw, clock())
    if secret is None:
        return None
    return Peer(
        identity=Identity(version, secret, draw),
        holder=holder,
        folder=Path(settings.storing.data_dir),
        host=peering.peer_host,
        ports=range(peering.peer_port, min(peering.peer_port + PORTS_MAX, PORTS_END)),
        clock=clock,
        grace_s=settings.serving.shutdown_grace_s,
    )


def _warn_of_others(database: Database) -> None:
    """Log a warning if another process uses this database. The settings say that none does."""
    if another_leads(database):
        LOG.warning(
            "database_used_by_others", hint="Set database_is_shared = true in all services."
        )


def _secret(
    database: Database, storing: Storing, draw: Callable[[int], bytes], now: datetime
) -> bytes | None:
    """Return the secret with which processes that serve the same database authenticate each other.

    Returns ``None``, and logs the reason, if the key file of this machine cannot open the secret.
    """
    path = key_files.path_of(storing)

    def take(tx: Tx) -> bytes:
        box = key_files.secret_box_for(tx, path, draw)
        found = secret_boxes.read(tx, box, SECRET)
        if found is None:
            found = draw(SECRET_BYTES)
            secret_boxes.keep(tx, box, SECRET, found, now)
        return found

    try:
        return database.write(take)
    except (key_files.KeyFileError, Conflict) as error:
        LOG.warning("writes_not_forwarded", why=str(error))
        return None
