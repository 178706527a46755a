"""Database access for server groups and their members.

Always true: queries of members leave out deleted servers. The membership rows of deleted servers
are kept, to show which group a server was in. Servers in child zones are members too. If such a
server is being undone, it does not count.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.grouping import Members, ServerGroup
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import MAY_CHANGE_HOSTS
from innkeeper.domain.zone_tree import PREFIX_END, ZoneServerState
from innkeeper.store import by_ids, pruning
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.compute import migrations, server_group_members, server_groups, servers
from innkeeper.store.tables.zones import zone_servers
from innkeeper.store.transactions import Tx

_MOST = "servers_per_host_max"
_FACTS = ("uuid", "name", "project_id", "user_id", "policy")
_GROUPS = sa.select(
    *(server_groups.c[name] for name in _FACTS),
    server_groups.c.rules,
    server_groups.c.created_at,
    server_groups.c.id,
)
_BY_UUID = _GROUPS.where(server_groups.c.uuid == sa.bindparam("requested"))
_OF_SERVER = _GROUPS.join(
    server_group_members, server_group_members.c.group_id == server_groups.c.id
).where(server_group_members.c.server_uuid == sa.bindparam("requested"))
_UUID_OF_SERVER = Prepared(
    sa.select(server_groups.c.uuid)
    .join(server_group_members, server_group_members.c.group_id == server_groups.c.id)
    .where(server_group_members.c.server_uuid == sa.bindparam("requested"))
)
_IS_MEMBER = (servers.c.uuid == server_group_members.c.server_uuid) & servers.c.deleted_at.is_(None)
_IS_OTHER = (server_group_members.c.group_id == sa.bindparam("requested")) & (
    server_group_members.c.server_uuid != sa.bindparam("but")
)
_MEMBERS = (
    sa.select(server_group_members.c.group_id, servers.c.uuid)
    .join(servers, _IS_MEMBER)
    .where(server_group_members.c.group_id.in_(IDS))
    .order_by(servers.c.id)
)
# SELECT host, COUNT(*) FROM server_group_members JOIN servers ...
#  WHERE group_id = :requested AND server_uuid != :but GROUP BY host
_MEMBERS_BY_HOST = (
    sa.select(servers.c.host, sa.func.count())
    .select_from(server_group_members)
    .join(servers, _IS_MEMBER)
    .where(_IS_OTHER)
    .group_by(servers.c.host)
)
_MOVING = (
    sa.select(servers.c.host, migrations.c.source_host, migrations.c.dest_host)
    .select_from(server_group_members)
    .join(servers, _IS_MEMBER)
    .join(migrations, migrations.c.server_uuid == servers.c.uuid)
    .where(_IS_OTHER)
    .where(migrations.c.status.in_(sorted(MAY_CHANGE_HOSTS)))
)
_IS_BELOW = (zone_servers.c.uuid == server_group_members.c.server_uuid) & (
    zone_servers.c.state != ZoneServerState.UNDOING
)
_MEMBERS_BELOW = (
    sa.select(server_group_members.c.group_id, zone_servers.c.uuid)
    .join(zone_servers, _IS_BELOW)
    .where(server_group_members.c.group_id.in_(IDS))
    .order_by(zone_servers.c.created_at, zone_servers.c.uuid)
)
# SELECT child_id, COUNT(*) FROM server_group_members JOIN zone_servers ...
#  WHERE group_id = :requested AND server_uuid != :but GROUP BY child_id
_BELOW_BY_CHILD = (
    sa.select(zone_servers.c.child_id, sa.func.count())
    .select_from(server_group_members)
    .join(zone_servers, _IS_BELOW)
    .where(_IS_OTHER)
    .group_by(zone_servers.c.child_id)
)
_ADD_MEMBERS = Prepared(server_group_members.insert())
_REMOVE_MEMBERS = server_group_members.delete().where(server_group_members.c.server_uuid.in_(IDS))


def _group(row: Sequence[Any]) -> ServerGroup:
    uuid, name, project_id, user_id, policy, rules, *rest = row
    return ServerGroup(uuid, name, project_id, user_id, policy, rules.get(_MOST), *rest)


def add(tx: Tx, group: ServerGroup) -> None:
    """Insert a group. Its row id is ignored."""
    most = group.servers_per_host_max
    tx.execute(
        server_groups.insert(),
        {
            **{name: getattr(group, name) for name in _FACTS},
            "rules": {} if most is None else {_MOST: most},
            "created_at": group.created_at,
            "updated_at": group.created_at,
        },
    )


def by_uuid(tx: Tx, uuid: str) -> ServerGroup | None:
    """Return the group with this uuid."""
    row = tx.execute(_BY_UUID, {"requested": uuid}).first()
    return None if row is None else _group(row)


def of_server(tx: Tx, server_uuid: str) -> ServerGroup | None:
    """Return the group that a server is in, or was in when it was deleted."""
    row = tx.execute(_OF_SERVER, {"requested": server_uuid}).first()
    return None if row is None else _group(row)


def uuid_of_server(tx: Tx, server_uuid: str) -> str | None:
    """Return the uuid of the group that :func:`of_server` returns."""
    rows = _UUID_OF_SERVER.rows(tx, {"requested": server_uuid})
    return str(rows[0][0]) if rows else None


def page(tx: Tx, project_id: str | None, *, limit: int, offset: int) -> list[ServerGroup]:
    """Return groups of a project, or of all projects, oldest first."""
    query = _GROUPS.order_by(server_groups.c.id).limit(limit).offset(offset)
    if project_id is not None:
        query = query.where(server_groups.c.project_id == project_id)
    return [_group(row) for row in tx.execute(query)]


def count(tx: Tx, project_id: str) -> int:
    """Return the number of groups of a project."""
    query = sa.select(sa.func.count()).select_from(server_groups)
    return int(tx.execute(query.where(server_groups.c.project_id == project_id)).scalar_one())


def named(tx: Tx, project_id: str, prefix: str) -> list[ServerGroup]:
    """Return the groups of a project whose names begin with this text."""
    is_named = server_groups.c.name.startswith(prefix, autoescape=True)
    query = _GROUPS.where(server_groups.c.project_id == project_id, is_named)
    return [_group(row) for row in tx.execute(query)]


def members(tx: Tx, group_ids: Collection[int]) -> Members:
    """Return the members of these groups, by group. Groups without members are left out."""
    found: dict[int, tuple[ServerId, ...]] = {}
    below = by_ids.rows(tx, _MEMBERS_BELOW, group_ids)
    for group_id, uuid in [*by_ids.rows(tx, _MEMBERS, group_ids), *below]:
        found[group_id] = (*found.get(group_id, ()), ServerId(uuid))
    return found


def member_counts(tx: Tx, group_id: int, but: str = "") -> dict[str | None, int]:
    """Return the number of members by host. ``but`` is the uuid of a server that does not count.

    The host is ``None`` for members without a host.
    """
    rows = tx.execute(_MEMBERS_BY_HOST, {"requested": group_id, "but": but})
    return {host: number for host, number in rows}


def counts_below(tx: Tx, group_id: int, but: str = "") -> dict[int, int]:
    """Return the number of members in child zones, by the child's row id.

    ``but`` is the uuid of a server that does not count.
    """
    rows = tx.execute(_BELOW_BY_CHILD, {"requested": group_id, "but": but})
    return {child_id: number for child_id, number in rows}


def hosts_ahead(tx: Tx, group_id: int, but: str = "") -> list[str]:
    """Return the sources and destinations of members' moves, except the members' present hosts.

    ``but`` is the uuid of a server whose moves are left out.
    """
    rows = tx.execute(_MOVING, {"requested": group_id, "but": but})
    return [
        other
        for host, source, destination in rows
        for other in (source, destination)
        if other is not None and other != host
    ]


def add_members(tx: Tx, group_id: int, uuids: Collection[str]) -> None:
    """Add servers to a group. The servers must not be in a group yet."""
    if uuids:
        _ADD_MEMBERS.run(tx, [{"server_uuid": uuid, "group_id": group_id} for uuid in uuids])


def remove_members(tx: Tx, uuids: Collection[str]) -> None:
    """Remove servers from their groups."""
    by_ids.run(tx, _REMOVE_MEMBERS, uuids)


def prune_of_parents(tx: Tx, before: datetime) -> int:
    """Delete old empty groups of zone parents, up to a maximum number per call.

    Only groups that were created before ``before`` are deleted. Returns the number of deleted
    groups.
    """
    group = server_groups.c
    member = sa.exists().where(server_group_members.c.group_id == group.id)
    # Only the ids of zone parents' projects contain this mark.
    is_empty = (
        group.project_id.contains(PREFIX_END)
        & (group.created_at < before)
        & ~member.where(_IS_MEMBER)
        & ~member.where(_IS_BELOW)
    )
    some = sa.select(group.id).where(is_empty).limit(pruning.ROWS_MAX)
    empty = [row[0] for row in tx.execute(some)]
    for group_id in empty:
        remove(tx, group_id)
    return len(empty)


def set_project(tx: Tx, group_id: int, project_id: str) -> None:
    """Change the project that owns a group."""
    query = server_groups.update().where(server_groups.c.id == group_id)
    tx.execute(query.values(project_id=project_id))


def remove(tx: Tx, group_id: int) -> None:
    """Delete a group and its memberships. The servers are kept."""
    tx.execute(server_group_members.delete().where(server_group_members.c.group_id == group_id))
    tx.execute(server_groups.delete().where(server_groups.c.id == group_id))
