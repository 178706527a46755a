"""Questions about aggregates and server groups: what an audit compares, and mends."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import sqlalchemy as sa

from innkeeper.domain.grouping import ZONE_KEY
from innkeeper.store import by_ids
from innkeeper.store.narrowing import Only, Rows, narrowed
from innkeeper.store.tables.compute import (
    aggregate_hosts,
    aggregates,
    hosts,
    server_group_members,
    server_groups,
    servers,
)
from innkeeper.store.transactions import Tx

_ZONES = (
    sa.select(hosts.c.name, hosts.c.availability_zone, hosts.c.reported_zone, aggregates.c.metadata)
    .outerjoin(aggregate_hosts, aggregate_hosts.c.host_id == hosts.c.id)
    .outerjoin(aggregates, aggregates.c.id == aggregate_hosts.c.aggregate_id)
    .order_by(hosts.c.id)
)


def zones(tx: Tx, only: Only = None) -> Iterator[tuple[str, str, str, set[str]]]:
    """Every host, or these: its name, the zone in force, the one reported, and aggregates'."""
    # What is in a JSON column is asked for differently by every database, so all is read.
    host: tuple[str, str, str] | None = None
    decided: set[str] = set()
    for *said, metadata in narrowed(tx, _ZONES, hosts.c.name, only):
        name, in_force, reported = said
        if host is not None and host[0] != name:
            yield (*host, decided)
            decided = set()
        host = (name, in_force, reported)
        if metadata is not None and ZONE_KEY in metadata:
            decided.add(metadata[ZONE_KEY])
    if host is not None:
        yield (*host, decided)


def strayed_members(tx: Tx, only: Only = None) -> Rows:
    """Rows of server, group's row, whether the server is there: where it is not, or belongs to
    another project than its group.
    """
    query = (
        sa.select(
            server_group_members.c.server_uuid,
            server_group_members.c.group_id,
            servers.c.id.is_not(None),
        )
        .join(server_groups, server_groups.c.id == server_group_members.c.group_id)
        .outerjoin(servers, servers.c.uuid == server_group_members.c.server_uuid)
        .where(servers.c.id.is_(None) | (server_groups.c.project_id != servers.c.project_id))
    )
    return narrowed(tx, query, server_group_members.c.server_uuid, only)


def remove_members(tx: Tx, uuids: Collection[str]) -> None:
    """Take servers out of their groups."""
    by_ids.run(tx, _REMOVE, uuids)


_REMOVE = server_group_members.delete().where(server_group_members.c.server_uuid.in_(by_ids.IDS))
