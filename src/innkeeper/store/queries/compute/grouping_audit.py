"""Queries for the audit of aggregates and server groups, and for its repair."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from innkeeper.domain.grouping import ZONE_KEY
from innkeeper.domain.zone_tree import PREFIX_END
from innkeeper.store.by_ids import Only, Rows, narrowed
from innkeeper.store.tables.compute import (
    aggregate_hosts,
    aggregates,
    hosts,
    server_group_members,
    server_groups,
    servers,
)
from innkeeper.store.tables.zones import zone_servers
from innkeeper.store.transactions import Tx

_ZONES = (
    sa.select(hosts.c.name, hosts.c.availability_zone, hosts.c.reported_zone, aggregates.c.metadata)
    .outerjoin(aggregate_hosts, aggregate_hosts.c.host_id == hosts.c.id)
    .outerjoin(aggregates, aggregates.c.id == aggregate_hosts.c.aggregate_id)
    .order_by(hosts.c.id)
)


def zones(tx: Tx, only: Only = None) -> Iterator[tuple[str, str, str, set[str]]]:
    """Yield all hosts, or the hosts in ``only``, with their zones.

    Each item is (name, effective zone, reported zone, zones of the host's aggregates).
    """
    # The syntax for JSON columns differs between databases, so all of the metadata is read.
    host: tuple[str, str, str] | None = None
    from_aggregates: set[str] = set()
    for name, effective, reported, metadata in narrowed(tx, _ZONES, hosts.c.name, only):
        if host is not None and host[0] != name:
            yield (*host, from_aggregates)
            from_aggregates = set()
        host = (name, effective, reported)
        if metadata is not None and ZONE_KEY in metadata:
            from_aggregates.add(metadata[ZONE_KEY])
    if host is not None:
        yield (*host, from_aggregates)


def strayed_members(tx: Tx, only: Only = None) -> Rows:
    """Return invalid members, as rows of (server, group's row id, whether the server exists).

    A member is invalid if the server does not exist, or if server and group belong to different
    projects. Exception: the members of a zone parent's group may come from several zone parents.
    """
    member, group = server_group_members.c, server_groups.c
    owner = sa.func.coalesce(servers.c.project_id, zone_servers.c.project_id)
    are_of_parents = group.project_id.contains(PREFIX_END) & owner.contains(PREFIX_END)
    query = (
        sa.select(member.server_uuid, member.group_id, owner.is_not(None))
        .join(server_groups, group.id == member.group_id)
        .outerjoin(servers, servers.c.uuid == member.server_uuid)
        .outerjoin(zone_servers, zone_servers.c.uuid == member.server_uuid)
        .where(owner.is_(None) | ((group.project_id != owner) & ~are_of_parents))
    )
    return narrowed(tx, query, server_group_members.c.server_uuid, only)
