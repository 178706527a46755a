"""Database access for hosts and their compute services."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Host, Task
from innkeeper.domain.hosts import KeptRatio
from innkeeper.domain.ids import AgentId, ProviderId, ProviderUuid, ServerId
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.compute import agents, hosts, servers, unknown_servers
from innkeeper.store.tables.placement import resource_providers
from innkeeper.store.transactions import Tx

_HOSTS = (
    sa.select(
        *records.columns(
            hosts, Host, provider_uuid=resource_providers.c.uuid, last_seen_at=agents.c.last_seen_at
        )
    )
    .join(resource_providers, resource_providers.c.id == hosts.c.provider_id)
    .join(agents, agents.c.id == hosts.c.agent_id)
)


def _host(row: Sequence[Any]) -> Host:
    *values, kept = row
    values.append(kept and {name: KeptRatio(*each) for name, each in kept.items()})
    return Host(*values)


@dataclass(frozen=True, slots=True)
class HostRow:
    """The facts about a host for the snapshot. Inventories and traits are not included."""

    provider_id: ProviderId
    provider_uuid: ProviderUuid
    name: str
    agent_id: AgentId
    availability_zone: str
    is_disabled: bool
    is_forced_down: bool
    capabilities: Mapping[str, Any]
    host_ip: str
    reported_at: datetime | None
    dedication: str | None
    dedicated_to: str | None


_SNAPSHOT = sa.select(
    *records.columns(hosts, HostRow, provider_uuid=resource_providers.c.uuid)
).join(
    resource_providers,
    # A provider that is a pool holds no servers, even if a host is on it.
    (resource_providers.c.id == hosts.c.provider_id) & (resource_providers.c.can_host == 1),
)
_SNAPSHOT_OF = _SNAPSHOT.where(hosts.c.provider_id.in_(IDS))
_PROVIDER_IDS = PreparedForIds(sa.select(hosts.c.provider_id).where(hosts.c.provider_id.in_(IDS)))


def rows_for_snapshot(tx: Tx, provider_ids: Collection[ProviderId] | None) -> list[HostRow]:
    """Return the hosts on these providers. ``None`` means all hosts."""
    if provider_ids is None:
        return [HostRow(*row) for row in tx.execute(_SNAPSHOT)]
    # Many claims are on providers without a host, so a cheap query excludes these first.
    ids = sorted({row[0] for row in _PROVIDER_IDS.rows(tx, provider_ids)})
    return [HostRow(*row) for row in by_ids.rows(tx, _SNAPSHOT_OF, ids)]


_PROVIDER_UUIDS = PreparedForIds(
    sa.select(hosts.c.provider_id, resource_providers.c.uuid)
    .join(resource_providers, resource_providers.c.id == hosts.c.provider_id)
    .where(hosts.c.provider_id.in_(IDS))
)


def provider_uuids(tx: Tx, provider_ids: Collection[ProviderId]) -> dict[ProviderId, ProviderUuid]:
    """Return the uuids of the providers with these row ids, if they have hosts."""
    rows = _PROVIDER_UUIDS.rows(tx, sorted(set(provider_ids)))
    return {ProviderId(row): ProviderUuid(uuid) for row, uuid in rows}


_PROVIDERS_BY_NAME = PreparedForIds(
    sa.select(hosts.c.name, resource_providers.c.uuid)
    .join(resource_providers, resource_providers.c.id == hosts.c.provider_id)
    .where(hosts.c.name.in_(IDS))
)


def provider_uuids_by_name(tx: Tx, names: Collection[str]) -> dict[str, ProviderUuid]:
    """Return the provider uuids of the hosts with these names. Unknown names are ignored."""
    return {name: ProviderUuid(uuid) for name, uuid in _PROVIDERS_BY_NAME.rows(tx, names)}


def reported_since(tx: Tx, since: datetime | None) -> list[tuple[ProviderId, datetime]]:
    """Return when hosts were last reported.

    Hosts whose last report was before ``since`` are left out.
    """
    is_reported = hosts.c.reported_at.is_not(None)
    query = sa.select(hosts.c.provider_id, hosts.c.reported_at).where(is_reported)
    if since is not None:
        query = query.where(hosts.c.reported_at >= since)
    return [(ProviderId(provider_id), moment) for provider_id, moment in tx.execute(query)]


def by_names(tx: Tx, names: Iterable[str]) -> dict[str, Host]:
    """Return the hosts with these names, by name. Unknown names are ignored."""
    requested = list(names)
    if not requested:
        return {}
    found = [_host(row) for row in tx.execute(_HOSTS.where(hosts.c.name.in_(requested)))]
    return {each.name: each for each in found}


def by_providers(tx: Tx, provider_ids: Collection[ProviderId]) -> list[Host]:
    """Return the hosts on these providers."""
    query = _HOSTS.where(hosts.c.provider_id.in_(IDS))
    return [_host(row) for row in by_ids.rows(tx, query, sorted(provider_ids))]


def by_service(tx: Tx, service_uuid: str) -> Host | None:
    """Return the host whose compute service has this uuid."""
    return _first(tx, hosts.c.service_uuid == service_uuid)


def by_row(tx: Tx, host_id: int) -> Host | None:
    """Return the host with this row id."""
    return _first(tx, hosts.c.id == host_id)


def by_rows(tx: Tx, host_ids: Collection[int]) -> dict[int, Host]:
    """Return the hosts with these row ids, by row id."""
    found = [_host(row) for row in by_ids.rows(tx, _HOSTS.where(hosts.c.id.in_(IDS)), host_ids)]
    return {each.id: each for each in found}


def by_provider(tx: Tx, uuid: ProviderUuid) -> Host | None:
    """Return the host on the provider with this uuid."""
    return _first(tx, resource_providers.c.uuid == uuid)


def _first(tx: Tx, condition: sa.ColumnElement[bool]) -> Host | None:
    row = tx.execute(_HOSTS.where(condition)).first()
    return None if row is None else _host(row)


def page(
    tx: Tx,
    *,
    after_row: int = 0,
    limit: int | None = None,
    name: str | None = None,
    name_part: str | None = None,
) -> list[Host]:
    """Return hosts after the row ``after_row``, oldest first.

    With ``name``, return only the host with this name. With ``name_part``, return only hosts whose
    names contain this text.
    """
    query = _HOSTS.where(hosts.c.id > after_row).order_by(hosts.c.id)
    if name is not None:
        query = query.where(hosts.c.name == name)
    if name_part is not None:
        query = query.where(hosts.c.name.contains(name_part, autoescape=True))
    if limit is not None:
        query = query.limit(limit)
    return [_host(row) for row in tx.execute(query)]


def add(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert hosts. Each mapping contains the values of a host's columns."""
    if rows:
        tx.execute(hosts.insert(), list(rows))


_REPORTED = (
    hosts.update()
    .where(hosts.c.id == sa.bindparam("host"))
    .values(
        agent_id=sa.bindparam("agent"),
        availability_zone=sa.bindparam("zone"),
        reported_zone=sa.bindparam("zone_said"),
        hypervisor_type=sa.bindparam("type"),
        hypervisor_version=sa.bindparam("version"),
        host_ip=sa.bindparam("ip"),
        cpu_facts=sa.bindparam("cpu", type_=sa.JSON),
        capabilities=sa.bindparam("facts", type_=sa.JSON),
        reported=sa.bindparam("what", type_=sa.JSON),
        booted_at=sa.bindparam("booted"),
        updated_at=sa.bindparam("now"),
    )
)


def change_reported(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Update hosts from changed reports.

    Each of ``rows`` has the parameters of the UPDATE for one host.
    """
    if rows:
        tx.execute(_REPORTED, list(rows))


def put_into_zone(tx: Tx, host_ids: Collection[int], zone: str, now: datetime) -> None:
    """Update the effective availability zone of hosts."""
    moved = hosts.update().where(hosts.c.id.in_(IDS))
    by_ids.run(tx, moved.values(availability_zone=zone, updated_at=now), host_ids)


_MARK_REPORTED = hosts.update().where(hosts.c.id.in_(IDS)).values(reported_at=sa.bindparam("now"))


def mark_reported(tx: Tx, host_ids: Sequence[int], now: datetime) -> None:
    """Record that hosts were reported now, even if nothing in the report changed."""
    for part in by_ids.parts(host_ids):
        tx.execute(_MARK_REPORTED, {"ids": part, "now": now})


def change_service(
    tx: Tx,
    host_id: int,
    *,
    is_disabled: bool,
    disabled_reason: str | None,
    is_forced_down: bool,
    now: datetime,
) -> None:
    """Update the operator's settings for a host's compute service."""
    tx.execute(
        hosts.update()
        .where(hosts.c.id == host_id)
        .values(
            is_disabled=is_disabled,
            disabled_reason=disabled_reason,
            is_forced_down=is_forced_down,
            updated_at=now,
        )
    )


def dedicate(
    tx: Tx,
    host_ids: Collection[int],
    dedication: str | None,
    dedicated_to: str | None,
    now: datetime,
) -> None:
    """Update the dedication of hosts."""
    values = {"dedication": dedication, "dedicated_to": dedicated_to, "updated_at": now}
    by_ids.run(tx, hosts.update().where(hosts.c.id.in_(IDS)).values(**values), host_ids)


def keep_ratios(tx: Tx, host_id: int, ratios: Mapping[str, KeptRatio] | None) -> None:
    """Store the allocation ratios that a host's dedication sets, with the host's own ratios."""
    kept = None if ratios is None else {name: list(each) for name, each in ratios.items()}
    tx.execute(hosts.update().where(hosts.c.id == host_id).values(kept_ratios=kept or None))


def remove(tx: Tx, host_id: int) -> None:
    """Delete a host and its unknown servers. The host's provider is kept."""
    name = sa.select(hosts.c.name).where(hosts.c.id == host_id).scalar_subquery()
    tx.execute(unknown_servers.delete().where(unknown_servers.c.host == name))
    tx.execute(hosts.delete().where(hosts.c.id == host_id))


def reported(tx: Tx, host_ids: Collection[int]) -> dict[int, Mapping[str, list[str]]]:
    """Return the resource classes and traits in each host's last report."""
    rows = tx.execute(sa.select(hosts.c.id, hosts.c.reported).where(hosts.c.id.in_(host_ids)))
    return {host_id: names for host_id, names in rows}


def servers_on(tx: Tx, names: Collection[str]) -> list[Any]:
    """Return the servers on these hosts that are not deleted, oldest first.

    The rows are (host, uuid, name, status, task state, fault, time of the last update).
    """
    names_of = ("host", "uuid", "name", "status", "task_state", "fault", "updated_at")
    query = sa.select(*(servers.c[name] for name in names_of))
    query = query.where(servers.c.host.in_(list(names))).where(servers.c.deleted_at.is_(None))
    return list(tx.execute(query.order_by(servers.c.id)))


def residents(tx: Tx, names: Collection[str]) -> list[Any]:
    """Return servers on these hosts that are not deleted, as rows of (host, uuid, project)."""
    query = sa.select(servers.c.host, servers.c.uuid, servers.c.project_id)
    query = query.where(servers.c.host.in_(IDS)).where(servers.c.deleted_at.is_(None))
    return by_ids.rows(tx, query.order_by(servers.c.id), names)


def to_delete(tx: Tx, names: Collection[str], seen_since: datetime, limit: int) -> list[ServerId]:
    """Return the servers on these hosts, oldest first.

    Servers that a live agent is deleting are left out.

    An agent is live if it was seen since ``seen_since`` and the host is not forced down.
    """
    # SELECT uuid FROM servers JOIN hosts ... JOIN agents ...
    #  WHERE host IN (...) AND deleted_at IS NULL
    #    AND (task_state IS NULL OR task_state <> 'deleting' OR (the host is down))
    query = (
        sa.select(servers.c.uuid)
        .join(hosts, hosts.c.name == servers.c.host)
        .join(agents, agents.c.id == hosts.c.agent_id)
        .where(servers.c.host.in_(IDS))
        .where(servers.c.deleted_at.is_(None))
        .where(
            servers.c.task_state.is_distinct_from(Task.DELETING)
            | hosts.c.is_forced_down.is_(sa.true())
            | (agents.c.last_seen_at < seen_since)
        )
        .order_by(servers.c.id)
        .limit(limit)
    )
    return [ServerId(row.uuid) for row in by_ids.rows(tx, query, names)][:limit]


_BUSY = sa.func.sum(sa.case((servers.c.task_state.is_not(None), 1), else_=0))


def server_counts(tx: Tx, names: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return the number of servers on each host, and how many of the servers have a task state."""
    query = sa.select(servers.c.host, sa.func.count(), _BUSY)
    query = query.where(servers.c.host.in_(IDS)).where(servers.c.deleted_at.is_(None))
    rows = by_ids.rows(tx, query.group_by("host"), names)
    return {name: (all_, int(busy)) for name, all_, busy in rows}


def all_server_counts(tx: Tx) -> tuple[int, int]:
    """Return the number of servers on all hosts, and how many of the servers have a task state."""
    query = sa.select(sa.func.count(), _BUSY).where(servers.c.host.is_not(None))
    count, working = tx.execute(query.where(servers.c.deleted_at.is_(None))).one()
    return count, int(working or 0)
