"""The steps that moves from host to host have in common, and what is held at each of them.

While a server moves, its own consumer holds the host that it goes to, and the migration's holds
the one that it comes from. Whichever it does not end up on is free again when what was left
there is surely gone.

Always true: both are written in the transaction of the step that makes them true; a migration
that is over holds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from innkeeper.domain.compute import OrderKind, Server, Status
from innkeeper.domain.errors import Conflict
from innkeeper.domain.ids import ConsumerUuid
from innkeeper.domain.moves import IN_FLIGHT, Asker, Migration, Moved
from innkeeper.store.queries.compute import migrations, quota_usages, server_actions
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.boot import CONSUMER_TYPE
from innkeeper.systems.compute.moves.destinations import NoValidHost, Place
from innkeeper.systems.compute.servers import actions
from innkeeper.systems.placement import transfers
from innkeeper.systems.placement.transfers import TransferSide

MIGRATION_TYPE = "MIGRATION"
"""What Placement's clients call a consumer that is a migration; a word of that API."""
SHELVABLE = (Status.ACTIVE, Status.SHUTOFF, Status.PAUSED, Status.SUSPENDED)
"""The states in which a server can be shelved."""
FlavorFacts = Mapping[str, Any]


class Drawn(TypedDict):
    """What a move is handed: the dice, an id for its migration, and the present moment."""

    seed: int
    new_id: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Start:
    """How a migration begins: why, at which stage, and to which flavor if to another one."""

    kind: str
    stage: str
    flavor: FlavorFacts | None = None


def demand_settled(tx: Tx, server: Server) -> None:
    """Raise :class:`Conflict` for a server that may be on its way to another host.

    It may be so with no task: nobody has told in time how sending it ended.
    """
    if any(each.status in IN_FLIGHT for each in migrations.open_ones(tx, [server.uuid])):
        raise Conflict(f"Server {server.uuid} may still be on its way to another host.")


def nowhere(
    tx: Tx, server: Server, action: str, asker: Asker, why: NoValidHost, now: datetime
) -> Moved:
    """There is no place for a server: it stays as it is, and the action says why."""
    server_actions.add(tx, server.uuid, action, asker, now)
    server_actions.end(tx, server.uuid, asker.request_id, why.message, now, why.counted)
    return Moved(None, why.message, why.counted)


def side(server: Server) -> TransferSide:
    """A server as a consumer."""
    return TransferSide(ConsumerUuid(server.uuid), server.project_id, server.user_id, CONSUMER_TYPE)


def side_of(migration: Migration, server: Server) -> TransferSide:
    """A server's migration as a consumer; what it holds is the project's of the server."""
    return TransferSide(migration.uuid, server.project_id, server.user_id, MIGRATION_TYPE)


def begin(
    tx: Tx, server: Server, place: Place, asker: Asker, start: Start, new_id: str, now: datetime
) -> Migration:
    """Write a migration, and claim: the migration holds the source, the server its new place.

    Raises what :func:`claims.replace` does where the new place has no room, and
    :class:`Conflict` for a server that is on its way already.
    """
    demand_settled(tx, server)
    made = migrations.add(
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
            "project_id": asker.project_id or server.project_id,
            "user_id": asker.user_id or server.user_id,
            "request_id": asker.request_id,
            "created_at": now,
            "updated_at": now,
        },
    )
    transfers.transfer(tx, side(server), side_of(made, server), now)
    transfers.claim_beside(tx, side(server), place.amounts, now)
    return made


def give_back(tx: Tx, migration: Migration, server: Server, now: datetime) -> None:
    """The server has again what its migration held, and lets its other place go."""
    transfers.transfer(tx, side_of(migration, server), side(server), now)


def swap(tx: Tx, migration: Migration, server: Server, now: datetime) -> None:
    """The server and its migration change places."""
    transfers.swap(tx, side_of(migration, server), side(server), now)


def clear(
    tx: Tx, migration: Migration, host: str, now: datetime, *, request_id: str | None = None
) -> bool:
    """Have destroyed what is left of a server on a host; False if there is no such host.

    The host's amounts are the migration's until its agent has confirmed.
    """
    return actions.tell(
        tx,
        host,
        migration.server_uuid,
        OrderKind.DESTROY,
        {},
        now,
        request_id=request_id or migration.request_id,
        migration_id=migration.id,
    )


def tell(
    tx: Tx,
    migration: Migration,
    host: str,
    kind: str,
    body: Mapping[str, Any],
    now: datetime,
    *,
    request_id: str | None = None,
) -> bool:
    """Give an order that is a part of a migration; False if there is no such host."""
    more = {
        "migration_id": migration.uuid,
        "source_host": migration.source_host,
        "dest_host": migration.dest_host,
    }
    return actions.tell(
        tx,
        host,
        migration.server_uuid,
        kind,
        {**body, **more},
        now,
        request_id=request_id or migration.request_id,
        migration_id=migration.id,
    )


def take_back(
    tx: Tx, migration: Migration, server: Server, now: datetime, *, request_id: str | None = None
) -> None:
    """Have the source run the server again as it did."""
    body = actions.order_body(server, migration.old_flavor)
    power = {"power_state": migration.old_state["power_state"]}
    is_told = tell(
        tx,
        migration,
        migration.source_host,
        OrderKind.RETURN,
        {**body, **power},
        now,
        request_id=request_id,
    )
    assert is_told, "a host with a server on it is not forgotten"


def shape(flavor: FlavorFacts) -> dict[str, Any]:
    """The columns of a server that its flavor decides."""
    swap_gb = -(-int(flavor["swap_mb"]) // 1024)
    return {
        "flavor": dict(flavor),
        "flavor_id": flavor["id"],
        "vcpus": flavor["vcpus"],
        "memory_mb": flavor["memory_mb"],
        "disk_gb": flavor["disk_gb"] + flavor["ephemeral_gb"] + swap_gb,
    }


def count_up(tx: Tx, project_id: str, migration: Migration) -> None:
    """Count what the new flavor has more than the old one."""
    vcpus, memory_mb = larger(migration, migration.old_flavor)
    quota_usages.add_usage(tx, project_id, 0, vcpus, memory_mb)


def count_down(tx: Tx, project_id: str, migration: Migration, stays: FlavorFacts) -> None:
    """Count the flavor that stays, and no longer the larger of both."""
    vcpus, memory_mb = larger(migration, stays)
    quota_usages.add_usage(tx, project_id, 0, -vcpus, -memory_mb)


def larger(migration: Migration, than: FlavorFacts) -> tuple[int, int]:
    """By how many vcpus and MB the larger of both flavors, in each, exceeds one of them."""
    vcpus, memory_mb = (
        max(migration.old_flavor[name], migration.new_flavor[name]) - than[name]
        for name in ("vcpus", "memory_mb")
    )
    return vcpus, memory_mb
