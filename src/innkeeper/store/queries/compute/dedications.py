"""Queries about dedicated hosts, which read the tables of pclouds, reservations and servers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Status
from innkeeper.domain.ids import ProviderId
from innkeeper.domain.leases import ReservationState
from innkeeper.domain.orders import OrderStatus
from innkeeper.domain.pclouds import consenting
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.compute import hosts, migrations, servers, work_orders
from innkeeper.store.tables.leases import lease_projects, leases, reservations
from innkeeper.store.tables.pclouds import pcloud_hosts, pcloud_projects, pclouds
from innkeeper.store.transactions import Tx


@dataclass(frozen=True, slots=True)
class PcloudFacts:
    """The projects that may use a pcloud.

    Servers of the projects in ``taken_in`` may be placed in the pcloud without a hint.
    """

    uuid: str
    projects: frozenset[str]
    taken_in: frozenset[str]


_PCLOUDS = sa.select(
    pclouds.c.id, pclouds.c.uuid, pclouds.c.project_id, pclouds.c.is_automatic
).where(pclouds.c.uuid.in_(IDS))
_PROJECTS = sa.select(
    pcloud_projects.c.pcloud_id, pcloud_projects.c.project_id, pcloud_projects.c.has_accepted
).where(pcloud_projects.c.pcloud_id.in_(IDS))
_NAMES = (
    sa.select(hosts.c.provider_id, pcloud_hosts.c.name)
    .join(pcloud_hosts, pcloud_hosts.c.host_id == hosts.c.id)
    .where(hosts.c.provider_id.in_(IDS))
)

NAMED_MAX = 10
"""The maximum number of ids that are listed for an ambiguous name."""
_NAMED = sa.select(pclouds.c.uuid).order_by(pclouds.c.id).limit(NAMED_MAX + 1)
# One row for each project that a lease is shared with. The project is NULL if the lease is not
# shared.
_USERS = PreparedForIds(
    sa.select(reservations.c.uuid, leases.c.project_id, lease_projects.c.project_id)
    .join(leases, leases.c.id == reservations.c.lease_id)
    .outerjoin(lease_projects, lease_projects.c.lease_id == reservations.c.lease_id)
    .where(reservations.c.uuid.in_(IDS))
)
_UNENDED = Prepared(
    sa.select(reservations.c.id)
    .join(leases, leases.c.id == reservations.c.lease_id)
    .where(reservations.c.uuid == sa.bindparam("reservation"))
    .where(sa.or_(*(reservations.c.state == each for each in ReservationState.PRESENT)))
    .where(leases.c.ended_at.is_(None), leases.c.is_deleted.is_(sa.false()))
    .where(leases.c.end_at > sa.bindparam("now"))
)
# The index on (host, deleted_at) finds the servers without a host. JSON is compared as text, which
# every database supports. The text may also match other parts of the JSON, so callers must check
# the hints that they receive.
OFFLOADED = (
    sa.select(servers.c.uuid, servers.c.project_id, servers.c.hints)
    .where(servers.c.host.is_(None))
    .where(servers.c.deleted_at.is_(None))
    .where(servers.c.status == Status.SHELVED_OFFLOADED)
    .where(sa.cast(servers.c.hints, sa.Text).like(sa.bindparam("key")))
    .order_by(servers.c.id)
)
_DELETED = sa.select(sa.func.max(servers.c.deleted_at)).where(servers.c.host == hosts.c.name)
_MOVED = sa.select(sa.func.max(migrations.c.updated_at)).where(
    migrations.c.source_host == hosts.c.name
)
# A server that was shelved has neither a host nor a migration, so the orders on the host are read.
# The order with the highest id is taken instead of the order that ended last. The latter would need
# a scan of all orders, and the times differ little.
_CARRIED_OUT = (
    sa.select(work_orders.c.updated_at)
    .where(work_orders.c.agent_id == hosts.c.agent_id)
    .where(work_orders.c.status.in_((OrderStatus.DONE, OrderStatus.FAILED)))
    .where(work_orders.c.host == hosts.c.name)
    .order_by(work_orders.c.id.desc())
    .limit(1)
)
# SELECT name, (its last deletion), (its last move away), (its last order that ended)
#  FROM hosts WHERE name IN (...)
_LEFT = sa.select(
    hosts.c.name,
    *(each.correlate(hosts).scalar_subquery() for each in (_DELETED, _MOVED, _CARRIED_OUT)),
).where(hosts.c.name.in_(IDS))


def pcloud_facts(tx: Tx, uuids: Collection[str]) -> list[PcloudFacts]:
    """Return the facts about these pclouds. Unknown uuids are ignored."""
    found = by_ids.rows(tx, _PCLOUDS, uuids)
    projects: dict[int, dict[str, bool]] = {each.id: {} for each in found}
    for row, project_id, has_accepted in by_ids.rows(tx, _PROJECTS, projects):
        projects[row][project_id] = has_accepted
    return [
        PcloudFacts(
            uuid,
            frozenset(projects[row]),
            consenting(owner, projects[row]) if is_automatic else frozenset(),
        )
        for row, uuid, owner, is_automatic in found
    ]


def names(tx: Tx, provider_ids: Collection[ProviderId]) -> dict[ProviderId, str]:
    """Return the names that the hosts on these providers have in their pclouds."""
    rows = by_ids.rows(tx, _NAMES, provider_ids)
    return {ProviderId(provider_id): name for provider_id, name in rows}


def is_name_used(tx: Tx, uuids: Collection[str], name: str) -> bool:
    """Return whether a host of one of these pclouds has this name."""
    query = (
        sa.select(pcloud_hosts.c.host_id)
        .join(pclouds, pclouds.c.id == pcloud_hosts.c.pcloud_id)
        .where(pclouds.c.uuid.in_(IDS), pcloud_hosts.c.name == name)
    )
    return bool(by_ids.rows(tx, query, uuids))


def own_pclouds_named(tx: Tx, name: str, project_id: str) -> list[str]:
    """Return the uuids of a project's pclouds with this name, up to :data:`NAMED_MAX` + 1."""
    query = _NAMED.where(pclouds.c.name == name, pclouds.c.project_id == project_id)
    return list(tx.execute(query).scalars())


def usable_pclouds_named(tx: Tx, name: str, project_id: str) -> list[str]:
    """Return the uuids of pclouds with this name that a project may use.

    Returns up to :data:`NAMED_MAX` + 1 uuids.
    """
    query = (
        _NAMED.join(pcloud_projects, pcloud_projects.c.pcloud_id == pclouds.c.id)
        .where(pcloud_projects.c.project_id == project_id)
        .where(pclouds.c.name == name)
    )
    return list(tx.execute(query).scalars())


def reservations_of_leases_named(
    tx: Tx, name: str, project_id: str, now: datetime, *, is_own: bool
) -> dict[str, list[str]]:
    """Return the reservations of current leases with this name, by lease.

    Only leases that the project owns, or that are shared with the project, count. Returns up to
    :data:`NAMED_MAX` + 1 reservations in all.
    """
    may_use = leases.c.project_id == project_id if is_own else _is_shared(project_id)
    query = (
        sa.select(leases.c.uuid, reservations.c.uuid)
        .join(reservations, reservations.c.lease_id == leases.c.id)
        .where(leases.c.name == name, may_use, reservations.c.state.in_(ReservationState.PRESENT))
        .where(leases.c.is_deleted.is_(False), leases.c.ended_at.is_(None))
        .where(leases.c.end_at > now)
        .order_by(reservations.c.id)
        .limit(NAMED_MAX + 1)
    )
    found: dict[str, list[str]] = {}
    for lease, uuid in tx.execute(query):
        found.setdefault(lease, []).append(uuid)
    return found


def _is_shared(project_id: str) -> sa.ColumnElement[bool]:
    return sa.exists().where(
        lease_projects.c.lease_id == leases.c.id, lease_projects.c.project_id == project_id
    )


def reservation_projects(tx: Tx, uuids: Collection[str]) -> dict[str, frozenset[str]]:
    """Return the projects that may use these reservations, by reservation.

    These are the owner of the lease, and the projects that the lease is shared with. Unknown uuids
    are ignored.
    """
    if not uuids:
        return {}
    found: dict[str, set[str]] = {}
    for uuid, owner, other in _USERS.rows(tx, uuids):
        found.setdefault(uuid, {owner}).add(owner if other is None else other)
    return {uuid: frozenset(projects) for uuid, projects in found.items()}


def is_unended(tx: Tx, reservation: str, now: datetime) -> bool:
    """Return whether a reservation exists and its lease is not over."""
    return bool(_UNENDED.rows(tx, {"reservation": reservation, "now": now}))


def offloaded_with_hint(tx: Tx, hint: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the shelved offloaded servers with this hint, as rows of (server, project, hints).

    The query scans all shelved offloaded servers, so it is not for frequent requests.
    """
    return [tuple(row) for row in tx.execute(OFFLOADED, {"key": f'%"{hint}"%'})]


def residents(tx: Tx, kinds: Collection[str]) -> list[tuple[str, str, str | None, dict[str, Any]]]:
    """Return the servers on hosts with these dedications, for audits.

    The rows are (server, host, what the host is dedicated to, hints).
    """
    query = (
        sa.select(servers.c.uuid, hosts.c.name, hosts.c.dedicated_to, servers.c.hints)
        .join(hosts, hosts.c.name == servers.c.host)
        .where(hosts.c.dedication.in_(sorted(kinds)))
        .where(servers.c.deleted_at.is_(None))
    )
    return [tuple(row) for row in tx.execute(query)]


def left_at(tx: Tx, names: Collection[str]) -> dict[str, datetime]:
    """Return when the last server left each of these hosts, or ``datetime.min`` if none did."""
    rows = by_ids.rows(tx, _LEFT, names)
    # All timestamps of the database are naive.
    never = datetime.min  # noqa: DTZ901
    return {name: max((each for each in ends if each), default=never) for name, *ends in rows}
