"""Questions about aggregates and server groups: what an audit compares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.grouping import ZONE_KEY
from innkeeper.store.tables.compute import (
    aggregate_hosts,
    aggregates,
    hosts,
    server_group_members,
    server_groups,
    servers,
)
from innkeeper.store.transactions import Tx

Rows = list[sa.Row[*tuple[Any, ...]]]
_ZONES = (
    sa.select(
        hosts.c.name, hosts.c.availability_zone, hosts.c.reported_zone, aggregates.c.metadata
    )
    .outerjoin(aggregate_hosts, aggregate_hosts.c.host_id == hosts.c.id)
    .outerjoin(aggregates, aggregates.c.id == aggregate_hosts.c.aggregate_id)
    .order_by(hosts.c.id)
)


def zones(tx: Tx) -> Iterator[tuple[str, str, str, set[str]]]:
    """Every host: its name, the zone in force, the one reported, and those of aggregates."""
    # What is in a JSON column is asked for differently by every database, so all is read.
    host: tuple[str, str, str] | None = None
    decided: set[str] = set()
    for *said, metadata in tx.execute(_ZONES):
        name, in_force, reported = said
        if host is not None and host[0] != name:
            yield (*host, decided)
            decided = set()
        host = (name, in_force, reported)
        if metadata is not None and ZONE_KEY in metadata:
            decided.add(metadata[ZONE_KEY])
    if host is not None:
        yield (*host, decided)


def dangling_memberships(tx: Tx) -> Rows:
    """Rows of aggregate's row, host's row, where one of the two is not there."""
    query = (
        sa.select(aggregate_hosts.c.aggregate_id, aggregate_hosts.c.host_id)
        .outerjoin(aggregates, aggregates.c.id == aggregate_hosts.c.aggregate_id)
        .outerjoin(hosts, hosts.c.id == aggregate_hosts.c.host_id)
        .where(aggregates.c.id.is_(None) | hosts.c.id.is_(None))
    )
    return list(tx.execute(query))


def strayed_members(tx: Tx) -> Rows:
    """Rows of server, group's row, where one is not there, or they are of two projects."""
    query = (
        sa.select(server_group_members.c.server_uuid, server_group_members.c.group_id)
        .outerjoin(server_groups, server_groups.c.id == server_group_members.c.group_id)
        .outerjoin(servers, servers.c.uuid == server_group_members.c.server_uuid)
        .where(
            server_groups.c.id.is_(None)
            | servers.c.id.is_(None)
            | (server_groups.c.project_id != servers.c.project_id)
        )
    )
    return list(tx.execute(query))
