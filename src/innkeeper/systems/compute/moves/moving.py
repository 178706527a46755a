"""The steps that all moves share, and the changes of allocations during moves.

While a server moves, the server has the allocations on the destination, and the migration has the
allocations on the source. After the move, the server is on the source or on the destination. The
allocations on the other host are released once that host has no copy of the server.

Always true: each step changes the allocations of server and migration in one transaction. A
migration that has ended has no allocations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from innkeeper.domain.compute import Server, Status
from innkeeper.domain.errors import Conflict
from innkeeper.domain.ids import ConsumerUuid
from innkeeper.domain.moves import IN_FLIGHT, Initiator, Migration, Moved, larger
from innkeeper.domain.orders import OrderKind
from innkeeper.store.queries.compute import migrations, quota_usages, server_actions
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.boot import CONSUMER_TYPE
from innkeeper.systems.compute.moves.destinations import NoValidHost, Place
from innkeeper.systems.compute.servers import actions
from innkeeper.systems.placement import transfers
from innkeeper.systems.placement.transfers import TransferSide

MIGRATION_TYPE = "MIGRATION"
"""The consumer type of migrations in the Placement API."""
SHELVABLE = (Status.ACTIVE, Status.SHUTOFF, Status.PAUSED, Status.SUSPENDED)
FlavorFacts = Mapping[str, Any]


class Drawn(TypedDict):
    """The values that the caller generates for a move: a seed, the migration's id and the time."""

    seed: int
    new_id: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Start:
    """How a move begins: its action, task, migration kind and first stage.

    ``flavor`` is the new flavor of a resize.
    """

    action: str
    task: str
    kind: str
    stage: str
    flavor: FlavorFacts | None = None


def demand_settled(tx: Tx, server: Server) -> None:
    """Raise :class:`Conflict` for a server that may be moving to another host.

    If the order of a live migration timed out, the server has no task, but may still be moving.
    """
    if any(each.status in IN_FLIGHT for each in migrations.open_ones(tx, [server.uuid])):
        raise Conflict(f"Server {server.uuid} may still be migrating to another host.")


def no_valid_host(
    tx: Tx, server: Server, action: str, initiator: Initiator, why: NoValidHost, now: datetime
) -> Moved:
    """Record an action that found no valid host. The server is unchanged."""
    server_actions.add(tx, server.uuid, action, initiator, now)
    server_actions.end(tx, server.uuid, initiator.request_id, why.message, now, why.counted)
    return Moved(None, why.message, why.counted)


def side(server: Server) -> TransferSide:
    """Return a server as one side of a transfer of allocations."""
    return TransferSide(ConsumerUuid(server.uuid), server.project_id, server.user_id, CONSUMER_TYPE)


def side_of(migration: Migration, server: Server) -> TransferSide:
    """Return a migration as one side of a transfer of allocations.

    The migration's allocations belong to the server's project.
    """
    return TransferSide(migration.uuid, server.project_id, server.user_id, MIGRATION_TYPE)


def begin(
    tx: Tx,
    server: Server,
    place: Place,
    initiator: Initiator,
    start: Start,
    new_id: str,
    now: datetime,
) -> Migration:
    """Begin the action and the migration of a move.

    The migration takes over the allocations on the source, and the server claims its amounts on the
    destination. Raises the errors of :func:`claims.replace` if the destination has too little free
    capacity. Raises :class:`Conflict` for a server that is already moving.
    """
    actions.begin(tx, server, start.action, initiator, {"task_state": start.task}, now)
    demand_settled(tx, server)
    migration = migrations.add(
        tx,
        {
            "uuid": new_id,
            "server_uuid": server.uuid,
            "kind": start.kind,
            "status": start.stage,
            "source_host": server.host,
            "source_provider_id": server.provider_id,
            "dest_host": place.host,
            "dest_provider_id": place.provider_id,
            "old_flavor": dict(server.flavor),
            "new_flavor": dict(server.flavor if start.flavor is None else start.flavor),
            "old_state": {"status": server.status, "power_state": server.power_state},
            "project_id": initiator.project_id or server.project_id,
            "user_id": initiator.user_id or server.user_id,
            "request_id": initiator.request_id,
            "created_at": now,
            "updated_at": now,
        },
    )
    transfers.transfer(tx, side(server), side_of(migration, server), now)
    transfers.claim_beside(tx, side(server), place.amounts, now)
    return migration


def give_back(tx: Tx, migration: Migration, server: Server, now: datetime) -> None:
    """Replace the server's present allocations with the migration's allocations."""
    transfers.transfer(tx, side_of(migration, server), side(server), now)


def swap(tx: Tx, migration: Migration, server: Server, now: datetime) -> None:
    """Exchange the allocations of a server and its migration."""
    transfers.swap(tx, side_of(migration, server), side(server), now)


def clear(
    tx: Tx, migration: Migration, host: str, now: datetime, *, request_id: str | None = None
) -> bool:
    """Order a host to destroy its copy of a server. Return False if the host does not exist.

    The migration keeps its allocations on the host until the agent has confirmed.
    """
    return _give(tx, migration, host, OrderKind.DESTROY, {}, now, request_id)


def give_order(
    tx: Tx,
    migration: Migration,
    host: str,
    kind: str,
    body: Mapping[str, Any],
    now: datetime,
    *,
    request_id: str | None = None,
) -> bool:
    """Queue an order that is part of a migration. Return False if the host does not exist."""
    more = {
        "migration_id": migration.uuid,
        "source_host": migration.source_host,
        "dest_host": migration.dest_host,
    }
    return _give(tx, migration, host, kind, {**body, **more}, now, request_id)


def _give(
    tx: Tx,
    migration: Migration,
    host: str,
    kind: str,
    body: Mapping[str, Any],
    now: datetime,
    request_id: str | None,
) -> bool:
    return actions.give_order(
        tx,
        host,
        migration.server_uuid,
        kind,
        body,
        now,
        request_id=request_id or migration.request_id,
        migration_id=migration.id,
    )


def order_source(
    tx: Tx,
    migration: Migration,
    kind: str,
    body: Mapping[str, Any],
    now: datetime,
    request_id: str | None = None,
) -> None:
    """Queue an order for the source host of a migration. The source still has the server."""
    source = migration.source_host
    is_given = give_order(tx, migration, source, kind, body, now, request_id=request_id)
    assert is_given, actions.HOST_STAYS


def take_back(
    tx: Tx, migration: Migration, server: Server, now: datetime, *, request_id: str | None = None
) -> None:
    """Order the source of a move to run the server as before the move."""
    body = actions.order_body(server, migration.old_flavor)
    body["power_state"] = migration.old_state["power_state"]
    order_source(tx, migration, OrderKind.RETURN, body, now, request_id)


def shape(flavor: FlavorFacts) -> dict[str, Any]:
    """Return the columns of a server that depend on its flavor."""
    swap_gb = -(-int(flavor["swap_mb"]) // 1024)
    return {
        "flavor": dict(flavor),
        "flavor_id": flavor["id"],
        "vcpus": flavor["vcpus"],
        "memory_mb": flavor["memory_mb"],
        "disk_gb": flavor["disk_gb"] + flavor["ephemeral_gb"] + swap_gb,
    }


def count_up(tx: Tx, project_id: str, migration: Migration) -> None:
    """Increase the quota usage for a resize, so that the larger of both flavors counts."""
    vcpus, memory_mb = larger(migration, migration.old_flavor)
    quota_usages.add_usage(tx, project_id, 0, vcpus, memory_mb)


def count_down(tx: Tx, project_id: str, migration: Migration, stays: FlavorFacts) -> None:
    """Decrease the quota usage after a resize, so that only the flavor ``stays`` counts."""
    vcpus, memory_mb = larger(migration, stays)
    quota_usages.add_usage(tx, project_id, 0, -vcpus, -memory_mb)
