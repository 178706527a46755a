"""Resize servers, and move servers by cold migration.

A cold migration shuts a server down and moves the server. The source prepares the server (order
``depart``), and the destination takes the server (order ``arrive``). Then the owner verifies the
server, and confirms or reverts the move. If the owner confirms, the source destroys its copy. If
the owner reverts, the destination destroys its copy, and the source runs the server as before
(order ``return``). A resize on the same host, or its revert, is one order (``resize``).

Always true: the server is on its source until the destination has confirmed. If an order fails or
times out, the server returns to its source.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Unpack

from innkeeper.domain.compute import Flavor, Server, Status, Task
from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.moves import (
    ActionName,
    Initiator,
    Migration,
    MigrationKind,
    MigrationStatus,
    Moved,
)
from innkeeper.domain.orders import OrderKind
from innkeeper.store.queries.compute import migrations
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.compute.boot import request_resolver, slot_checks
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.flavors import demands, flavors, images
from innkeeper.systems.compute.moves import completion, destinations, moving
from innkeeper.systems.compute.moves.destinations import NoValidHost, Place
from innkeeper.systems.compute.moves.moving import Drawn, FlavorFacts, Start
from innkeeper.systems.compute.servers import actions, servers
from innkeeper.systems.volumes import attachments

# A query that is re-exported unchanged.
to_confirm = migrations.finished_from

MOVABLE = (Status.ACTIVE, Status.SHUTOFF)


def resize(
    tx: Tx,
    context: DecisionContext,
    uuid: str,
    flavor_id: str,
    initiator: Initiator,
    *,
    told: Flavor | None = None,
    **drawn: Unpack[Drawn],
) -> Moved:
    """Begin to resize a server.

    The server usually moves to another host. If a zone parent sent the new flavor, ``told`` is this
    flavor, and the flavor is not looked up in this zone. Raises :class:`Invalid` for a flavor that
    the server cannot have. Raises :class:`QuotaExceeded`.
    """
    now = drawn["now"]
    server = actions.admit(tx, uuid, initiator, MOVABLE)
    flavor = told or flavors.for_resize(
        tx, flavor_id, server.project_id, is_admin=initiator.is_admin
    )
    if attachments.boots_from_volume(tx, server.uuid):
        flavor = replace(flavor, disk_gb=0)
    _check_fit(tx, server, flavor, is_told=told is not None)
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
        return moving.no_valid_host(tx, server, ActionName.RESIZE, initiator, place, now)
    begun = _begin(tx, server, place, initiator, drawn["new_id"], now, flavors.facts_of(flavor))
    moving.count_up(tx, server.project_id, begun)
    return Moved(begun.id)


def migrate(
    tx: Tx,
    context: DecisionContext,
    uuid: str,
    initiator: Initiator,
    *,
    host: str | None = None,
    **drawn: Unpack[Drawn],
) -> Moved:
    """Begin to shut down and move a server. Without a requested host, the best host is chosen."""
    now = drawn["now"]
    server = actions.admit(tx, uuid, initiator, MOVABLE)
    wanted = destinations.demand_other(tx, server, host)
    destinations.demand_up(tx, context, server, now)
    place = destinations.elsewhere(tx, context, server, wanted, seed=drawn["seed"], now=now)
    if isinstance(place, NoValidHost):
        return moving.no_valid_host(tx, server, ActionName.MIGRATE, initiator, place, now)
    return Moved(_begin(tx, server, place, initiator, drawn["new_id"], now).id)


def _begin(
    tx: Tx,
    server: Server,
    place: Place,
    initiator: Initiator,
    new_id: str,
    now: datetime,
    flavor: FlavorFacts | None = None,
) -> Migration:
    source = servers.demand_host(server)
    kind, action = MigrationKind.MIGRATION, ActionName.MIGRATE
    if flavor is not None:
        kind, action = MigrationKind.RESIZE, ActionName.RESIZE
    order, task, stage = OrderKind.DEPART, Task.RESIZE_MIGRATING, MigrationStatus.MIGRATING
    if place.host == source:
        order, task, stage = OrderKind.RESIZE, Task.RESIZE_FINISH, MigrationStatus.POST_MIGRATING
    start = Start(action, task, kind, stage, flavor)
    begun = moving.begin(tx, server, place, initiator, start, new_id, now)
    body = actions.order_body(server, begun.new_flavor)
    moving.give_order(tx, begun, source, order, body, now)
    return begun


def _check_fit(tx: Tx, server: Server, flavor: Flavor, *, is_told: bool) -> None:
    """Raise :class:`Invalid` for a flavor that a server cannot have."""
    if flavor.flavor_id == server.flavor_id:
        raise Invalid("When resizing, servers must change flavor!")
    if flavor.disk_gb == 0 and server.flavor["disk_gb"] != 0:
        raise Invalid("Resize to zero disk flavor is not allowed.")
    if is_told:
        # A zone parent's image is not looked up either. So the image's minimum sizes are not
        # checked.
        slot_checks.check(tx, demands.of(flavor, {}), flavor.flavor_id, server.project_id)
        return
    image = None
    if server.image_id is not None:
        image = images.get_many(tx, [server.image_id]).get(server.image_id)
    if image is not None and image.min_ram_mb > flavor.memory_mb:
        raise Invalid("Flavor's memory is too small for requested image.")
    if image is not None and flavor.disk_gb and image.min_disk_gb > flavor.disk_gb:
        raise Invalid("Flavor's disk is smaller than the minimum size specified in image.")


def confirm(tx: Tx, uuid: str, initiator: Initiator, *, now: datetime) -> None:
    """Confirm a move.

    The source destroys its copy of the server. Then the allocations on the source are released.
    """
    server = actions.admit(tx, uuid, initiator, (Status.VERIFY_RESIZE,))
    _confirm(tx, server, _finished(tx, server), initiator, now)


def confirm_these(tx: Tx, uuids: Collection[str], initiator: Initiator, now: datetime) -> int:
    """Confirm the moves of these servers, even if they are locked.

    Returns the number of confirmed moves. A server is skipped if it no longer exists, has a task,
    or has no move to confirm.
    """
    count = 0
    for uuid in uuids:
        server = server_rows.by_uuid(tx, uuid)
        if server and (server.status, server.task_state) == (Status.VERIFY_RESIZE, None):
            _confirm(tx, server, _finished(tx, server), initiator, now)
            count += 1
    return count


def _confirm(
    tx: Tx, server: Server, migration: Migration, initiator: Initiator, now: datetime
) -> None:
    values = {"task_state": None, "status": migration.old_state["status"]}
    actions.begin(tx, server, ActionName.CONFIRM_RESIZE, initiator, values, now)
    if migration.kind == MigrationKind.RESIZE:
        moving.count_down(tx, server.project_id, migration, migration.new_flavor)
    completion.leave_behind(
        tx, migration, MigrationStatus.CONFIRMING, now, request_id=initiator.request_id
    )


def revert(tx: Tx, uuid: str, initiator: Initiator, *, now: datetime) -> None:
    """Revert a move. The server returns to its source and its old flavor."""
    server = actions.admit(tx, uuid, initiator, (Status.VERIFY_RESIZE,))
    migration = _finished(tx, server)
    values = {
        "task_state": Task.RESIZE_REVERTING,
        "host": migration.source_host,
        "provider_id": migration.source_provider_id,
        **moving.shape(migration.old_flavor),
    }
    actions.begin(tx, server, ActionName.REVERT_RESIZE, initiator, values, now)
    moving.swap(tx, migration, server, now)
    if migration.kind == MigrationKind.RESIZE:
        moving.count_down(tx, server.project_id, migration, migration.old_flavor)
    migrations.change_status(tx, migration, MigrationStatus.REVERTING, now)
    if migration.stays:
        body = actions.order_body(server, migration.old_flavor)
        moving.order_source(tx, migration, OrderKind.RESIZE, body, now, initiator.request_id)
        return
    assert migration.dest_host is not None, "the server is there"
    is_given = moving.clear(
        tx, migration, migration.dest_host, now, request_id=initiator.request_id
    )
    assert is_given, actions.HOST_STAYS


def _finished(tx: Tx, server: Server) -> Migration:
    for each in migrations.open_ones(tx, [server.uuid]):
        if each.status == MigrationStatus.FINISHED:
            return each
    raise Conflict(f"Server {server.uuid} has no move that could be confirmed or reverted.")
