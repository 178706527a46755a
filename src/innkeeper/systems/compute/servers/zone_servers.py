"""Counts the quota usage of servers in child zones, and lists servers for zone parents.

Always true: a server in a child zone counts in this zone before the child is asked to build the
server. The server counts until it is certain that the child does not have it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import NotFound, QuotaExceeded
from innkeeper.domain.grouping import ServerGroup
from innkeeper.domain.ids import ServerId
from innkeeper.domain.limits import Limits
from innkeeper.domain.moves import COUNTED_TWICE, MigrationKind, larger
from innkeeper.domain.zone_tree import HeldServer, ZoneServer, ZoneServerState, payer_of
from innkeeper.store import by_ids
from innkeeper.store.queries.compute import migrations, quota_usages, tree_servers
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.zones import remote

UNDECIDED = (ZoneServerState.BUILDING, ZoneServerState.UNDOING)

Amounts = tuple[int, int]
"""The vcpus and the memory in MB of a server."""

# Queries that are re-exported unchanged.
own_of_batch = tree_servers.of_batch
deleted_of_batch = tree_servers.deleted_of_batch


@dataclass(frozen=True, slots=True)
class ResizeBelow:
    """A resize in a child zone: the amounts that count before and during it.

    The child may begin the resize until ``until``, which the server's row has as ``updated_at``.
    ``changed_before`` is the ``updated_at`` from before the resize.
    """

    before: Amounts
    during: Amounts
    until: datetime
    changed_before: datetime


def begin(tx: Tx, servers: Sequence[ZoneServer], default: Limits) -> None:
    """Record and count servers that child zones will build. Raises :class:`QuotaExceeded`."""
    project_id = servers[0].project_id
    vcpus, memory_mb = sum(e.vcpus for e in servers), sum(e.memory_mb for e in servers)
    payer = payer_of(project_id)
    limit = quotas.limits(tx, payer, default).servers
    used = quotas.used(tx, payer).servers
    if limit != UNLIMITED and used + len(servers) > limit:
        raise QuotaExceeded(
            f"Quota exceeded for instances: Requested {len(servers)}, but already used {used} of "
            f"{limit} instances"
        )
    quotas.demand_room(tx, project_id, default, vcpus, memory_mb)
    record(tx, servers)


def record(tx: Tx, servers: Sequence[ZoneServer]) -> None:
    """Record servers of one project, and add them to the quota usage.

    The quota is not checked.
    """
    vcpus, memory_mb = sum(e.vcpus for e in servers), sum(e.memory_mb for e in servers)
    remote.add(tx, servers)
    quota_usages.add_usage(tx, servers[0].project_id, len(servers), vcpus, memory_mb)


def join(
    tx: Tx, group: ServerGroup | None, servers: Sequence[ZoneServer], default: Limits | None
) -> None:
    """Add servers to their server group, before child zones build the servers.

    Without ``default`` limits, the quota is not checked here, because another zone checks it.
    Raises :class:`QuotaExceeded`.
    """
    if group is None:
        return
    if default is not None:
        limit = quotas.limits(tx, group.project_id, default).server_group_members
        groups.allowed_count(groups.state(tx, group), limit, len(servers), len(servers))
    groups.add_members(tx, group.id, [each.uuid for each in servers])


def adopt(tx: Tx, child_id: int, held: HeldServer, now: datetime) -> None:
    """Record a server of a child zone that is not recorded in this zone."""
    row = ZoneServer(
        uuid=ServerId(held.uuid),
        child_id=child_id,
        batch_id=held.batch_id,
        project_id=held.project_id,
        user_id=held.user_id,
        vcpus=held.vcpus,
        memory_mb=held.memory_mb,
        state=ZoneServerState.BUILT,
        batch_min=0,
        created_at=now,
        updated_at=now,
    )
    remote.add(tx, [row])
    quota_usages.add_usage(tx, row.project_id, 1, row.vcpus, row.memory_mb)


def forget(tx: Tx, uuids: Collection[str]) -> int:
    """Forget servers that child zones certainly do not have. Return the number of servers."""
    found = remote.by_uuids(tx, uuids)
    remote.remove(tx, [each.uuid for each in found])
    groups.leave(tx, [each.uuid for each in found])
    for each in found:
        quota_usages.add_usage(tx, each.project_id, -1, -each.vcpus, -each.memory_mb)
    return len(found)


def forget_decided(tx: Tx, uuids: Collection[str]) -> int:
    """Forget the servers whose boot batch is decided. Return the number of servers.

    A boot batch is the servers of one boot request. If the user deletes a server before its batch
    is decided, the server's row is kept until the decision. The row shows that the server was
    built.
    """
    done = (ZoneServerState.BUILT, ZoneServerState.DELETING)
    found = remote.by_uuids(tx, uuids)
    return forget(tx, [e.uuid for e in found if e.state in done and e.batch_min == 0])


def ever_here(tx: Tx, uuids: Collection[str]) -> Collection[str]:
    """Return the ids that belong to present or former servers of this zone itself."""
    return server_rows.ever_known(tx, [ServerId(each) for each in uuids])


def taken(tx: Tx, uuids: Collection[str], project_id: str, *, here: Collection[str]) -> set[str]:
    """Return the ids that belong to servers of other projects, in this zone or its child zones.

    ``here`` has the ids for servers in this zone itself. An id in ``here`` is also returned if any
    server of a child zone has this id.
    """
    # New ids have no rows, and a query for ids without rows is quick.
    own = server_rows.alive(tx, ever_here(tx, uuids))
    below = remote.by_uuids(tx, uuids)
    owners = {each.uuid: each.project_id for each in own}
    owners |= {each.uuid: each.project_id for each in below}
    theirs = {str(uuid) for uuid, owner in owners.items() if owner != project_id}
    return theirs | {str(each.uuid) for each in below if each.uuid in here}


def resize(tx: Tx, server: ZoneServer, vcpus: int, memory_mb: int) -> None:
    """Count the amounts that a server now has in its child zone."""
    more = vcpus - server.vcpus, memory_mb - server.memory_mb
    if more != (0, 0):
        remote.set_amounts(tx, server.uuid, vcpus, memory_mb)
        quota_usages.add_usage(tx, server.project_id, 0, *more)


def resize_compared(tx: Tx, compared: ZoneServer, vcpus: int, memory_mb: int) -> int:
    """Count amounts that a child zone reported, unless the server's row has changed meanwhile.

    ``compared`` is the row that was read before the child was asked. Return the number of changed
    servers.
    """
    if remote.get(tx, compared.uuid) != compared:
        return 0
    resize(tx, compared, vcpus, memory_mb)
    return 1


def begin_resize(
    tx: Tx, uuid: str, amounts: Amounts, until: datetime, default: Limits
) -> ResizeBelow:
    """Before a resize, count the larger of a server's present and new amounts.

    The child zone may begin the resize until ``until``. Raises :class:`QuotaExceeded`, and
    :class:`NotFound` if the server is gone.
    """
    row = remote.get(tx, uuid)
    if row is None:
        raise NotFound(f"Server {uuid} could not be found.")
    before = row.vcpus, row.memory_mb
    during = max(before[0], amounts[0]), max(before[1], amounts[1])
    more = during[0] - before[0], during[1] - before[1]
    quotas.demand_room(tx, row.project_id, default, *more)
    resize(tx, row, *during)
    # No two resizes of a server have the same moment.
    until = max(until, row.updated_at + timedelta(microseconds=1))
    remote.look_after(tx, uuid, until)
    return ResizeBelow(before, during, until, row.updated_at)


def end_resize(
    tx: Tx, uuid: str, resized: ResizeBelow, now: datetime, *, is_accepted: bool
) -> None:
    """After the child's answer, count the larger amounts if the child has accepted the resize.

    Otherwise, count the amounts from before the resize. If another resize may still begin, the
    larger amounts stay, and the repair corrects them later.
    """
    row = remote.get(tx, uuid)
    if row is None:
        return
    if is_accepted:
        # The amounts may be lower, if the boot of the server was decided during the resize.
        vcpus, memory_mb = resized.during
        resize(tx, row, max(vcpus, row.vcpus), max(memory_mb, row.memory_mb))
    if row.updated_at == resized.until and resized.changed_before <= now:
        if not is_accepted:
            resize(tx, row, *resized.before)
        remote.look_after(tx, uuid, now)


def forget_of(tx: Tx, servers: Sequence[ZoneServer], now: datetime) -> None:
    """Forget servers, and make sure that no late request builds them in this zone."""
    remote.forbid(tx, [each.uuid for each in servers], now)
    forget(tx, [each.uuid for each in servers])


def held(tx: Tx, prefix: str, uuids: Collection[str]) -> list[HeldServer]:
    """Return the servers in ``uuids`` whose projects have this prefix.

    The servers are in this zone or in its child zones.
    """
    below = [_held(each) for each in remote.by_uuids(tx, uuids)]
    found = [*_during_resizes(tx, tree_servers.by_uuids(tx, uuids)), *below]
    return [each for each in found if each.project_id.startswith(prefix)]


def held_page(tx: Tx, prefix: str, after: str | None, limit: int) -> list[HeldServer]:
    """Return the next servers of projects with this prefix, sorted by id.

    The servers are in this zone or in its child zones.
    """
    below = [_held(each) for each in remote.of_prefix(tx, prefix, after, limit)]
    own = _during_resizes(tx, tree_servers.of_prefix(tx, prefix, after, limit))
    found = [*own, *below]
    return sorted(found, key=lambda each: each.uuid)[:limit]


def _during_resizes(tx: Tx, found: Sequence[HeldServer]) -> list[HeldServer]:
    """Return these servers with the amounts that count for quotas, also during resizes."""
    shapes = {each.uuid: {"vcpus": each.vcpus, "memory_mb": each.memory_mb} for each in found}
    more: dict[str, Amounts] = {}
    for part in by_ids.parts(shapes):
        for each in migrations.open_ones(tx, part):
            if each.kind == MigrationKind.RESIZE and each.status in COUNTED_TWICE:
                more[each.server_uuid] = larger(each, shapes[each.server_uuid])
    return [_with_more(each, *more.get(each.uuid, (0, 0))) for each in found]


def _with_more(server: HeldServer, vcpus: int, memory_mb: int) -> HeldServer:
    return replace(server, vcpus=server.vcpus + vcpus, memory_mb=server.memory_mb + memory_mb)


def _held(server: ZoneServer) -> HeldServer:
    return HeldServer(
        server.uuid,
        server.project_id,
        server.user_id,
        server.batch_id,
        server.vcpus,
        server.memory_mb,
        server.state in UNDECIDED,
    )
