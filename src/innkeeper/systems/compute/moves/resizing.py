"""Resize and cold migration: a server is shut down, carried over, and may still go back.

The source makes the server ready to leave (``depart``), the destination takes it (``arrive``),
and it is there to be looked at. Confirmed, the source destroys what it kept; reverted, the
destination does, and the server is on the source again as before (``return``). A resize on the
same host is one order (``resize``) in either direction.

Always true: until the destination has confirmed, the server is on its source. What fails, or is
not confirmed in time, takes it back there.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Unpack

from innkeeper.domain.compute import Flavor, OrderKind, Server, Status, Task
from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.moves import (
    ActionName,
    Asker,
    Migration,
    MigrationKind,
    MigrationStatus,
    Moved,
)
from innkeeper.store.queries.compute import migrations
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import images
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.compute.boot import request_resolver
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.moves import completion, destinations, moving
from innkeeper.systems.compute.moves.destinations import NoValidHost, Place
from innkeeper.systems.compute.moves.moving import Drawn, Start
from innkeeper.systems.compute.servers import actions, servers

MOVABLE = (Status.ACTIVE, Status.SHUTOFF)


def resize(
    tx: Tx,
    context: DecisionContext,
    uuid: str,
    flavor_id: str,
    asker: Asker,
    **drawn: Unpack[Drawn],
) -> Moved:
    """Begin to give a server another flavor, most likely on another host.

    Raises :class:`Invalid` for a flavor that cannot be, and :class:`QuotaExceeded`.
    """
    now = drawn["now"]
    server = actions.admit(tx, uuid, asker, MOVABLE)
    flavor = _other_flavor(tx, server, flavor_id, asker)
    destinations.demand_up(tx, context, server, now)
    more = (max(0, flavor.vcpus - server.vcpus), max(0, flavor.memory_mb - server.memory_mb))
    quotas.demand_room(tx, server.project_id, quotas.defaults(context.computing), *more)
    refused = destinations.refused_hosts(tx, server)
    if context.computing.allow_resize_to_same_host:
        refused -= {servers.demand_host(server)}
    spec = request_resolver.spec_of_server(
        tx, context, server, flavor=flavor, now=now, seed=drawn["seed"], refused_hosts=refused
    )
    place = destinations.find(context, spec)
    if isinstance(place, NoValidHost):
        return moving.nowhere(tx, server, ActionName.RESIZE, asker, place, now)
    start = Start(MigrationKind.RESIZE, MigrationStatus.MIGRATING, flavors.facts_of(flavor))
    made = _begin(tx, server, place, asker, start, drawn["new_id"], now)
    moving.count_up(tx, server.project_id, made)
    return Moved(made.id)


def migrate(
    tx: Tx,
    context: DecisionContext,
    uuid: str,
    asker: Asker,
    *,
    host: str | None = None,
    **drawn: Unpack[Drawn],
) -> Moved:
    """Begin to move a server to another host, or to a certain one; it is shut down for it."""
    now = drawn["now"]
    server = actions.admit(tx, uuid, asker, MOVABLE)
    wanted = destinations.demand_other(tx, server, host)
    destinations.demand_up(tx, context, server, now)
    place = destinations.elsewhere(tx, context, server, wanted, seed=drawn["seed"], now=now)
    if isinstance(place, NoValidHost):
        return moving.nowhere(tx, server, ActionName.MIGRATE, asker, place, now)
    start = Start(MigrationKind.MIGRATION, MigrationStatus.MIGRATING)
    made = _begin(tx, server, place, asker, start, drawn["new_id"], now)
    return Moved(made.id)


def _begin(
    tx: Tx, server: Server, place: Place, asker: Asker, start: Start, new_id: str, now: datetime
) -> Migration:
    source = servers.demand_host(server)
    is_resize = start.kind == MigrationKind.RESIZE
    action = ActionName.RESIZE if is_resize else ActionName.MIGRATE
    order, task = OrderKind.DEPART, Task.RESIZE_MIGRATING
    if place.host == source:
        start = replace(start, stage=MigrationStatus.POST_MIGRATING)
        order, task = OrderKind.RESIZE, Task.RESIZE_FINISH
    actions.begin(tx, server, action, asker, {"task_state": task}, now)
    made = moving.begin(tx, server, place, asker, start, new_id, now)
    moving.tell(tx, made, source, order, actions.order_body(server, made.new_flavor), now)
    return made


def _other_flavor(tx: Tx, server: Server, flavor_id: str, asker: Asker) -> Flavor:
    flavor = flavors.by_public_ids(tx, {flavor_id}).get(flavor_id)
    if flavor is None or not (
        flavor.is_public or asker.is_admin or flavors.may_use(tx, flavor, server.project_id)
    ):
        raise Invalid(f"Flavor {flavor_id} could not be found.")
    if flavor.flavor_id == server.flavor_id:
        raise Invalid("When resizing, servers must change flavor!")
    if flavor.is_disabled:
        raise Invalid(f"Flavor {flavor_id} could not be found.")
    if flavor.disk_gb == 0 and server.flavor["disk_gb"] != 0:
        raise Invalid("Resize to zero disk flavor is not allowed.")
    image = None
    if server.image_id is not None:
        image = images.get_many(tx, [server.image_id]).get(server.image_id)
    if image is not None and image.min_ram_mb > flavor.memory_mb:
        raise Invalid("Flavor's memory is too small for requested image.")
    if image is not None and flavor.disk_gb and image.min_disk_gb > flavor.disk_gb:
        raise Invalid("Flavor's disk is smaller than the minimum size specified in image.")
    return flavor


def confirm(tx: Tx, uuid: str, asker: Asker, *, now: datetime) -> None:
    """Have a moved server stay. What its source kept is destroyed, and free then."""
    server = actions.admit(tx, uuid, asker, (Status.VERIFY_RESIZE,))
    migration = _finished(tx, server)
    values = {"task_state": None, "status": migration.old_state["status"]}
    actions.begin(tx, server, ActionName.CONFIRM_RESIZE, asker, values, now)
    if migration.kind == MigrationKind.RESIZE:
        moving.count_down(tx, server.project_id, migration, migration.new_flavor)
    completion.leave_behind(
        tx, migration, MigrationStatus.CONFIRMING, now, request_id=asker.request_id
    )


def revert(tx: Tx, uuid: str, asker: Asker, *, now: datetime) -> None:
    """Have a moved server go back to where and what it was."""
    server = actions.admit(tx, uuid, asker, (Status.VERIFY_RESIZE,))
    migration = _finished(tx, server)
    values = {
        "task_state": Task.RESIZE_REVERTING,
        "host": migration.source_host,
        "provider_id": migration.source_provider_id,
        **moving.shape(migration.old_flavor),
    }
    actions.begin(tx, server, ActionName.REVERT_RESIZE, asker, values, now)
    moving.swap(tx, migration, server, now)
    if migration.kind == MigrationKind.RESIZE:
        moving.count_down(tx, server.project_id, migration, migration.old_flavor)
    migrations.change_status(tx, migration, MigrationStatus.REVERTING, now)
    if migration.stays:
        body = actions.order_body(server, migration.old_flavor)
        moving.tell(
            tx,
            migration,
            migration.source_host,
            OrderKind.RESIZE,
            body,
            now,
            request_id=asker.request_id,
        )
        return
    assert migration.dest_host is not None, "it is there"
    told = moving.clear(tx, migration, migration.dest_host, now, request_id=asker.request_id)
    assert told, "a host with a server on it is not forgotten"


def _finished(tx: Tx, server: Server) -> Migration:
    for each in migrations.open_ones(tx, [server.uuid]):
        if each.status == MigrationStatus.FINISHED:
            return each
    raise Conflict(f"Server {server.uuid} has no move that could be confirmed or reverted.")
