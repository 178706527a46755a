"""Database access for preemptible servers on hosts that leases need, and for their warnings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Status, Task
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import LeaseEventKind, LeaseEventState
from innkeeper.domain.moves import OPEN, MigrationStatus
from innkeeper.domain.preemption import EXTRA_SPEC, Preemption, ThreatenedServer, is_preemptible
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.queries.leases.holds import IS_PRESENT
from innkeeper.store.tables.compute import agents, hosts, migrations, servers
from innkeeper.store.tables.leases import (
    freepool_hosts,
    holds,
    lease_events,
    leases,
    preemptions,
    reservations,
)
from innkeeper.store.transactions import Tx

# The index of events finds the few leases that start soon. Hosts that were handed over are left
# out, because they have no preemptible servers.
_NEEDED = (
    sa.select(holds.c.host_id, sa.func.min(leases.c.start_at))
    .select_from(lease_events)
    .join(leases, leases.c.id == lease_events.c.lease_id)
    .join(reservations, reservations.c.lease_id == leases.c.id)
    .join(holds, holds.c.reservation_id == reservations.c.id)
    .where(lease_events.c.state.in_([LeaseEventState.WAITING, LeaseEventState.BEGUN]))
    .where(lease_events.c.due_at <= sa.bindparam("until"))
    .where(lease_events.c.kind == LeaseEventKind.START)
    .where(IS_PRESENT)
    .where(holds.c.is_active.is_(sa.false()))
    .group_by(holds.c.host_id)
)
_LEAVING = sa.select(freepool_hosts.c.host_id, freepool_hosts.c.leaves_at).where(
    freepool_hosts.c.leaves_at <= sa.bindparam("until")
)
# JSON is compared as text, which every database supports. The text may also match other parts of
# the JSON, so the functions below check the flavors.
_MAYBE_PREEMPTIBLE = sa.cast(servers.c.flavor, sa.Text).like(f"%{EXTRA_SPEC}%")
_SERVERS = (
    sa.select(
        servers.c.uuid,
        servers.c.host,
        servers.c.flavor,
        servers.c.task_state,
        hosts.c.id,
        hosts.c.is_forced_down,
        agents.c.last_seen_at,
    )
    .join(hosts, hosts.c.name == servers.c.host)
    .join(agents, agents.c.id == hosts.c.agent_id)
    .where(hosts.c.id.in_(IDS), hosts.c.dedication == Dedication.FREEPOOL)
    .where(servers.c.deleted_at.is_(None), _MAYBE_PREEMPTIBLE)
    .order_by(servers.c.id)
)
_FINISHED = (
    sa.select(servers.c.uuid, migrations.c.old_flavor)
    .join(migrations, migrations.c.server_uuid == servers.c.uuid)
    .join(hosts, hosts.c.name == migrations.c.source_host)
    .where(hosts.c.id.in_(IDS), hosts.c.dedication == Dedication.FREEPOOL)
    .where(migrations.c.status == MigrationStatus.FINISHED)
    .where(migrations.c.dest_host != migrations.c.source_host)
    .where(servers.c.deleted_at.is_(None), servers.c.task_state.is_(None))
    .where(servers.c.status == Status.VERIFY_RESIZE)
    .order_by(servers.c.id)
)
_MOVES = (
    sa.select(hosts.c.id, migrations.c.old_flavor, migrations.c.new_flavor)
    .join(
        hosts, (hosts.c.name == migrations.c.source_host) | (hosts.c.name == migrations.c.dest_host)
    )
    .where(hosts.c.id.in_(IDS), migrations.c.status.in_(sorted(OPEN)))
)
_WARNED = sa.select(*records.columns(preemptions, Preemption))
_DELETE = preemptions.delete().where(preemptions.c.server_uuid.in_(IDS))


def needed(tx: Tx, until: datetime) -> dict[int, datetime]:
    """Return the hosts that must be empty by ``until``, for a lease or to leave the freepool.

    The result maps each host to the time from which it must be empty. Hosts that the lease already
    has are left out.
    """
    found: dict[int, datetime] = {}
    for query in (_NEEDED, _LEAVING):
        for host_id, needed_at in tx.execute(query, {"until": until}):
            found[host_id] = min(needed_at, found.get(host_id, needed_at))
    return found


def threatened(
    tx: Tx, needs: Mapping[int, datetime], seen_since: datetime
) -> list[ThreatenedServer]:
    """Return the preemptible servers on these hosts.

    ``needs`` has the time from which each host is needed. An agent that was not seen since
    ``seen_since`` counts as down. The hosts are read in groups. Within a group, the oldest servers
    come first.
    """
    return [
        ThreatenedServer(
            ServerId(uuid),
            host,
            needs[host_id],
            task == Task.DELETING,
            task == Task.DELETING and (bool(is_forced_down) or seen_at < seen_since),
        )
        for uuid, host, flavor, task, host_id, is_forced_down, seen_at in _on(tx, needs)
        if is_preemptible(flavor["extra_specs"])
    ]


def _on(tx: Tx, host_ids: Iterable[int]) -> Sequence[Any]:
    return by_ids.rows(tx, _SERVERS, list(host_ids))


def hosts_with(tx: Tx, host_ids: Collection[int]) -> set[int]:
    """Return the hosts in ``host_ids`` that have a preemptible server.

    Hosts that a preemptible server is migrating from or to count too.
    """
    found = {row.id for row in _on(tx, host_ids) if is_preemptible(row.flavor["extra_specs"])}
    for host_id, *flavors in by_ids.rows(tx, _MOVES, host_ids):
        if any(is_preemptible(each["extra_specs"]) for each in flavors):
            found.add(host_id)
    return found


def to_confirm(tx: Tx, host_ids: Collection[int]) -> list[ServerId]:
    """Return the preemptible servers whose moves from these hosts can be confirmed now.

    Only hosts of the freepool count. A server counts if it was preemptible before the move.
    """
    rows = by_ids.rows(tx, _FINISHED, host_ids)
    return [ServerId(uuid) for uuid, old in rows if is_preemptible(old["extra_specs"])]


def everywhere(tx: Tx) -> dict[ServerId, str | None]:
    """Return all preemptible servers with their hosts."""
    query = sa.select(servers.c.uuid, servers.c.host, servers.c.flavor)
    rows = tx.execute(query.where(servers.c.deleted_at.is_(None), _MAYBE_PREEMPTIBLE))
    return {
        ServerId(uuid): host for uuid, host, flavor in rows if is_preemptible(flavor["extra_specs"])
    }


def taken_hosts(tx: Tx) -> set[str]:
    """Return the hosts that were handed over, wholly or in part, to leases that are not over."""
    query = (
        sa.select(hosts.c.name)
        .join(holds, holds.c.host_id == hosts.c.id)
        .join(reservations, reservations.c.id == holds.c.reservation_id)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(holds.c.is_active.is_(sa.true()), IS_PRESENT)
    )
    return set(tx.execute(query).scalars())


def warned(tx: Tx) -> dict[ServerId, Preemption]:
    """Return all warnings by server."""
    return {ServerId(row.server_uuid): Preemption(*row) for row in tx.execute(_WARNED)}


def add(tx: Tx, rows: Collection[Preemption]) -> None:
    """Record warnings. New warnings replace earlier warnings to the same servers."""
    remove(tx, [each.server_uuid for each in rows])
    values = [
        {
            "server_uuid": each.server_uuid,
            "host": each.host,
            "warned_at": each.warned_at,
            "delete_at": each.delete_at,
        }
        for each in rows
    ]
    if values:
        tx.execute(preemptions.insert(), values)


def remove(tx: Tx, uuids: Collection[ServerId]) -> None:
    """Delete the warnings to these servers."""
    by_ids.run(tx, _DELETE, uuids)
